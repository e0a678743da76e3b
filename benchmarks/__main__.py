"""The command: `python -m benchmarks` runs everything and writes the report; `list`, `run`, `report` do parts.

Each experiment runs alone in its own process, so that it does not use memory or caches of another. Quick runs, which
measure nothing, run two at a time. The command first prints how long it will take, from the time of the last run.
A run of all experiments requires a clean commit, so that all results are of one commit.
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
from benchmarks.machine import describe_commit

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
    if not arguments.quick and not arguments.names:
        check_commit(describe_commit())
    failed = _run(arguments.names, arguments.quick)
    if not arguments.quick:
        from benchmarks.report import write_report

        write_report(quick=False)
    return 1 if failed else 0


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("command", nargs="?", default="run", choices=["run", "list", "report", "one"])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="experiments to run, or keys of targets (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: checks that all runs, measures nothing")
    return parser.parse_intermixed_args(words)


def check_commit(commit: str) -> None:
    """Exit unless this is a clean commit."""
    if commit == "unknown" or commit.endswith("+"):
        where = "not a git checkout" if commit == "unknown" else f"src/ or benchmarks/ differ from commit {commit[:-1]}"
        sys.exit(f"{where}; results of all experiments must be of one commit: commit first, or name experiments")


def _list() -> int:
    from benchmarks.harness import all_experiments

    for each in all_experiments().values():
        others = [key for key in each.targets if key != each.name]
        print(f"{each.name:22} {each.summary}" + (f" ({', '.join(others)})" if others else ""))
    return 0


def _run(names: list[str], quick: bool) -> list[str]:
    """Run experiments, given by name or by the key of a target, each in its own process. Returns those that failed."""
    from benchmarks.harness import UnknownExperimentError, find_experiments

    try:
        chosen = find_experiments(names)
    except UnknownExperimentError as error:
        sys.exit(str(error))
    at_once = _QUICK_AT_ONCE if quick else 1
    known_seconds = results.read_seconds(quick)
    print(describe_length(chosen, known_seconds, at_once), file=sys.stderr, flush=True)
    started = time.monotonic()
    left, failed, one_at_a_time = list(chosen), [], threading.Lock()
    commit = describe_commit()

    def run(name: str) -> None:
        command = [sys.executable, "-m", "benchmarks", "one", name, *(["--quick"] if quick else [])]
        if not quick:
            announce(name)
        begun = time.monotonic()
        done = subprocess.run(command, stderr=subprocess.PIPE if quick else None, text=True)
        with one_at_a_time:
            if quick:
                announce(name)
                print(done.stderr, end="", file=sys.stderr, flush=True)
            left.remove(name)
            if done.returncode or (not quick and describe_commit() != commit):
                failed.append(name)
            else:
                results.keep_seconds(name, time.monotonic() - begun, quick)

    def announce(name: str) -> None:
        minutes = (time.monotonic() - started) / 60
        progress = f"{minutes:.1f} min so far, {describe_left(left, known_seconds, at_once)}"
        print(f"[{len(chosen) - len(left) + 1}/{len(chosen)}] {name}  ({progress})", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(run, chosen))
    print(f"done in {(time.monotonic() - started) / 60:.1f} min", file=sys.stderr, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr, flush=True)
    return failed


def describe_length(names: Sequence[str], seconds: Mapping[str, float], at_once: int = 1) -> str:
    """How long these experiments will take, by their last runs."""
    if not seconds:
        return "no previous run, so the time is unknown"
    n_new = sum(name not in seconds for name in names)
    length = f"about {_minutes(names, seconds, at_once):.1f} min"
    length = f"{len(names)} experiments, {length}" if len(names) > 1 else length
    return length + (f" ({n_new} without a previous run, estimated by the median of the others)" if n_new else "")


def describe_left(names: Sequence[str], seconds: Mapping[str, float], at_once: int = 1) -> str:
    """How long the remaining experiments will take."""
    return f"about {_minutes(names, seconds, at_once):.1f} min left" if seconds else "time left unknown"


def _minutes(names: Sequence[str], seconds: Mapping[str, float], at_once: int) -> float:
    usual = statistics.median(seconds.values())
    return sum(seconds.get(name, usual) for name in names) / 60 / at_once


def _run_one(name: str, quick: bool) -> int:
    from benchmarks.harness import AnswersDifferError, Bench, all_experiments

    bench, experiment = Bench(name, quick), all_experiments()[name]
    gc.freeze()  # collecting imported modules before each run would take a tenth of a second
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
