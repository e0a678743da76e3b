"""The memory of workers of one host that follow a set.

Two measures. The first is the memory of the base's file: the parts that workers map, and have written to, added up as
proportional set size. It does not detect a worker that has copied the base to its heap. The second is the total memory,
which is that and all memory without a file. From it, the memory of workers that follow a hundredth of the queries, over
the same rows with as many answers, is subtracted. Program files are not counted, because their share depends on other
processes.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import vedette as vd
from benchmarks.experiments.registry_follow import (
    N_CHANGES,
    FedStream,
    Transform,
    add_ranges,
    make_changer,
    make_rows,
)
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.streams import batch_files, write_batches
from vedette import spark as vs

MOST_MAPPED, MOST_BASES = 1.5, 2.5  # times the base; four copies and the file would be 5
N_WORKERS, N_SHARDS = 4, 16
N_WARM = 3  # micro-batches before the changes, and after
A_PART_EACH = {  # of every file, and of every shuffle
    "spark.sql.files.minPartitionNum": str(N_WORKERS),
    "spark.sql.files.openCostInBytes": "1",
    "spark.sql.shuffle.partitions": str(N_WORKERS),
}


@dataclass(frozen=True)
class Memory:
    """The memory of processes that map files of a folder, in bytes."""

    n_processes: int
    mapped: int  # of the files, in the process that maps most
    of_files: int  # resident memory of the mapped files, each page by its share
    kept: int  # that, and memory without a file, each page by its share

    @classmethod
    def measure(cls, folder: Path) -> Memory:
        """The memory of all processes except this one."""
        found = []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if str(folder) in (process / "maps").read_text():
                    found.append(read_smaps((process / "smaps").read_text().splitlines(), str(folder)))
        mapped, of_files, kept = zip(*found, strict=True) if found else ((0,), (), ())
        return cls(len(found), max(mapped), sum(of_files), sum(kept))


def read_smaps(lines: Iterable[str], folder: str) -> tuple[int, int, int]:
    """Bytes that a process maps of a folder's files, its resident share, and that plus memory without a file."""
    mapped = of_files = kept = 0
    is_ours = is_of_file = False
    for line in lines:
        name, *values = line.split()
        if not name.endswith(":"):  # the head of a mapping: addresses, rights, offset, device, inode, and file
            is_of_file, is_ours = values[3] != "0", values[-1].startswith(folder)
        elif name == "Size:" and is_ours:
            mapped += 1024 * int(values[0])
        elif name == "Pss:":
            share = 1024 * int(values[0])
            of_files += share if is_ours else 0
            kept += share if is_ours or not is_of_file else 0
    return mapped, of_files, kept


@experiment("registry-workers")
def registry_workers(bench: Bench) -> None:
    """The share of the base in the memory of four workers of one host that follow 1M queries."""
    n_queries, n_few = bench.size(1_000_000, 20_000), bench.size(10_000, 2_000)
    n_rows, n_runs, n_warm = bench.size(400_000, 50_000), bench.size(3, 1), bench.size(N_WARM, 1)
    for kind in ("match", "border"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            registry = vd.Registry(f"sqlite:///{folder / 'alerts.db'}", snapshots=str(folder / "bases"))
            write_batches(folder / "rows", make_rows(n_rows, 2 * n_warm))
            sets = {n: f"alerts-{n}" for n in (n_few, n_queries)}
            for n, each in sets.items():
                add_ranges(registry, each, n, kind)
            changes = {n: make_changer(registry, each, n) for n, each in sets.items()}
            runs: list[tuple[int, list[Memory], list[Memory]]] = []
            for _ in range(n_runs):
                bases = [registry.compact(each).n_bytes for each in sets.values()]
                few, many = (_measure(registry, sets[n], folder, n_warm, changes[n]) for n in sets)
                runs.append((bases[-1], few, many))
        case = f"{kind}, {n_queries:,} queries, {N_WORKERS} workers"
        bench.note("registry-workers", case, "MB, the base", runs[0][0] / 1e6)
        for place, moment in enumerate((case, f"{case}, after {N_CHANGES:,} changes")):
            _note_medians(bench, moment, n_few, [(base, few[place], many[place]) for base, few, many in runs])


def _note_medians(bench: Bench, case: str, n_few: int, runs: list[tuple[int, Memory, Memory]]) -> None:
    """Note the medians of some runs, each with the bytes of the base, with few queries and with many."""
    mapped = statistics.median(many.of_files / base for base, _, many in runs)
    measure = "times the base, of its file alone, in the memory of all workers"
    bench.verdict("registry-workers", case, measure, mapped, MOST_MAPPED)
    few_kept, many_kept = (statistics.median(run[place].kept for run in runs) for place in (1, 2))
    bench.note("registry-workers", case, "MB, all that the workers keep", many_kept / 1e6)
    bench.note("registry-workers", case, f"MB, all that they keep with {n_few:,} queries", few_kept / 1e6)
    more = [(many.kept - few.kept) / base for base, few, many in runs]
    bench.say(f"{case}: more by {', '.join(f'{each:.3g}' for each in more)} times the base")
    measure = f"times the base, in all that the workers keep (above that with {n_few:,} queries)"
    bench.verdict("registry-workers", case, measure, statistics.median(more), MOST_BASES)


def _measure(registry: vd.Registry, name: str, folder: Path, n_warm: int, change: Callable[[], None]) -> list[Memory]:
    """The memory of workers that follow a set, after some micro-batches, and after changes and more micro-batches."""
    files = batch_files(folder / "rows")
    spark = vs.session("benchmarks", master=f"local[{N_WORKERS}]", **A_PART_EACH)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        stream = FedStream(spark, Path(place), files[0], _follow(registry, name))
        found = []
        for number, file in enumerate(files):
            if number == n_warm:
                found.append(Memory.measure(folder / "bases"))
                change()
            stream.feed(file)
        found.append(Memory.measure(folder / "bases"))
        stream.stop()
        spark.stop()
    if any(each.n_processes != N_WORKERS for each in found):
        raise AnswersDifferError(f"{[each.n_processes for each in found]} workers have the base instead of {N_WORKERS}")
    return found


def _follow(registry: vd.Registry, name: str) -> Transform:
    followed = registry.follow(name)
    if followed.kind == "match":
        return vs.match(followed, output="list")
    return vs.border(followed, key="k", time="t", shards=N_SHARDS)
