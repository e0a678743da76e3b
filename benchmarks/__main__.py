"""The command: `python -m benchmarks` runs everything and writes the report; `list`, `run`, `report` do parts.

Each experiment runs in a process of its own, so that none finds the memory or the caches of another, and alone; only
quick ones, which measure nothing, run two at once. How long all will take is said beforehand, by what each took when it
last ran. `vedette bench` is the same.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks import results

_QUICK_AT_ONCE = 2


def main() -> int:
    arguments = _parse(sys.argv[1:])
    if arguments.command == "list":
        return _list()
    if arguments.command == "one":
        return _run_one(arguments.names[0], arguments.quick)
    if arguments.command == "report":
        from benchmarks.report import write_report

        return write_report(arguments.quick)
    failed = _run(arguments.names, arguments.quick)
    if not arguments.quick:
        from benchmarks.report import write_report

        write_report(quick=False)
    return 1 if failed else 0


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("command", nargs="?", default="run", choices=["run", "list", "report", "one"])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="experiments to run, or keys of targets; all, if none is named"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: a check that all runs, not a measurement")
    return parser.parse_intermixed_args(words)


def _list() -> int:
    from benchmarks.harness import all_experiments

    for each in all_experiments().values():
        others = [key for key in each.targets if key != each.name]
        print(f"{each.name:22} {each.summary}" + (f" ({', '.join(others)})" if others else ""))
    return 0


def _run(names: list[str], quick: bool) -> list[str]:
    """Run these experiments, by name or by the key of a target, each in its own process; those that failed."""
    from benchmarks.harness import UnknownExperimentError, find_experiments

    try:
        chosen = find_experiments(names)
    except UnknownExperimentError as error:
        sys.exit(str(error))
    at_once = _QUICK_AT_ONCE if quick else 1
    known_seconds = results.read_seconds(quick)
    print(tell_length(chosen, known_seconds, at_once), file=sys.stderr, flush=True)
    started = time.monotonic()
    left, failed, one_at_a_time = list(chosen), [], threading.Lock()

    def run(name: str) -> None:
        command = [sys.executable, "-m", "benchmarks", "one", name, *(["--quick"] if quick else [])]
        if not quick:
            tell(name)
        begun = time.monotonic()
        done = subprocess.run(command, stderr=subprocess.PIPE if quick else None, text=True)
        with one_at_a_time:
            if quick:
                tell(name)
                print(done.stderr, end="", file=sys.stderr, flush=True)
            left.remove(name)
            if done.returncode:
                failed.append(name)
            else:
                results.keep_seconds(name, time.monotonic() - begun, quick)

    def tell(name: str) -> None:
        minutes = (time.monotonic() - started) / 60
        progress = f"{minutes:.1f} min so far, {tell_left(left, known_seconds, at_once)}"
        print(f"[{len(chosen) - len(left) + 1}/{len(chosen)}] {name}  ({progress})", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(run, chosen))
    print(f"done in {(time.monotonic() - started) / 60:.1f} min", file=sys.stderr, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr, flush=True)
    return failed


def tell_length(names: Sequence[str], seconds: Mapping[str, float], at_once: int = 1) -> str:
    """How long these experiments will take, by how long they took before."""
    if not seconds:
        return "how long this takes is not known: nothing has run before"
    n_new = sum(name not in seconds for name in names)
    told = f"about {_minutes(names, seconds, at_once):.1f} min"
    told = f"{len(names)} experiments, {told}" if len(names) > 1 else told
    return told + (f", of which {n_new} that have not run before count as the median of the others" if n_new else "")


def tell_left(names: Sequence[str], seconds: Mapping[str, float], at_once: int = 1) -> str:
    """How long these experiments will still take."""
    return f"about {_minutes(names, seconds, at_once):.1f} min left" if seconds else "how long is not known"


def _minutes(names: Sequence[str], seconds: Mapping[str, float], at_once: int) -> float:
    usual = statistics.median(seconds.values())
    return sum(seconds.get(name, usual) for name in names) / 60 / at_once


def _run_one(name: str, quick: bool) -> int:
    from benchmarks.harness import AnswersDifferError, Bench, all_experiments

    bench, experiment = Bench(name, quick), all_experiments()[name]
    gc.freeze()  # what is imported stays: to look for garbage in it before each run would take a tenth of a second
    try:
        experiment.run(bench)
    except AnswersDifferError as error:
        print(f"    {name}: answers differ, nothing timed: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        gc.unfreeze()
    results.write(name, bench.rows, quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
