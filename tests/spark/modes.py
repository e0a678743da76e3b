"""Every operator over the same rows, as batch and stream, in a separate process; and what the answers must be."""

from __future__ import annotations

import json
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from spark import bands, fleets, quotes, ticks
from spark.streams import read_answers, read_cuts, to_tuples, write_batches, write_rows

N_FILES = 5


class Run:
    """The rows, and the answers."""

    def __init__(self, directory):
        self.directory = directory
        self.ticks = ticks.make_rows(50 * N_FILES)
        for name in ("match", "border"):
            write_rows(self.ticks, directory / name / "rows", N_FILES)
        self.quotes = [quotes.make_rows(160, seed) for seed in (21, 22)]
        write_rows(self.quotes[0], directory / "window join" / "left", N_FILES)
        write_batches(quotes.cut(self.quotes[1], N_FILES, seed=23), directory / "window join" / "right")
        self.bands = write_bands(directory / "band join")
        self.fleets = write_fleets(directory / "moving join")

    def streamed(self, name):
        answers = [table for tables in read_answers(self.directory / name).values() for table in tables]
        return sorted(row for table in answers for row in to_tuples(table))

    def batches(self, name):
        """The answers of a batch in each session that ran."""
        for kind in ("connect", "classic"):
            yield sorted(to_tuples(ds.dataset(self.directory / name / f"batch-{kind}").to_table()))

    def cuts(self, name):
        """The files of each micro-batch and source; each file is processed once."""
        cuts = read_cuts(self.directory / name / "checkpoint")
        assert [[file for files in side for file in files] for side in cuts] == [list(range(N_FILES))] * 2
        return cuts

    def check_match(self):
        expected = sorted(
            (row["symbol"], row["price"], int(row["ts"].timestamp()), query)
            for row in self.ticks.to_pylist()
            for query in range(ticks.N_QUERIES)
            if query <= row["price"] <= query + ticks.WIDTH
        )
        assert self.streamed("match") == expected
        assert list(self.batches("match")) == [expected] * 2

    def check_border(self):
        expected = ticks.expected_events(self.ticks)
        assert self.streamed("border") == expected
        assert list(self.batches("border")) == [expected] * 2

    def check_window_join(self):
        expected = quotes.expected_pairs(*self.quotes, quotes.EQUATED)
        assert len(expected) > 100
        assert self.streamed("window join") == expected
        assert list(self.batches("window join")) == [expected] * 2

    def check_band_join(self):
        taken = [
            [[row for file in files for row in side[file]] for files in cut]
            for side, cut in zip(self.bands, self.cuts("band join"), strict=True)
        ]
        changes = [change for changes in bands.expected_changes(*taken) for change in changes]
        assert self.streamed("band join") == sorted(changes)
        current = Counter()
        for sign, *pair in changes:
            current[tuple(pair)] += sign
        assert set(current.values()) <= {0, 1}
        assert list(self.batches("band join")) == [sorted((1, *pair) for pair, n in current.items() if n)] * 2

    def check_moving_join(self):
        files = [fleets.cut(rows, N_FILES) for rows in self.fleets]
        # A killed stream may read two files of one set at once; then the other set's rows are late.
        batches = [
            [[row for number in numbers for row in each[number]] for each, numbers in zip(files, taken, strict=True)]
            for taken in zip(*self.cuts("moving join"), strict=True)
        ]
        assert self.streamed("moving join") == fleets.tell_batches(batches)
        world, _ = fleets.make_world(*batches)
        for moment, pairs in json.loads((self.directory / "pairs").read_text()):
            assert pairs == sorted(map(list, world.pairs(moment)))
            assert pairs
        expected = fleets.tell(*self.fleets)
        assert len(expected) > 100
        assert list(self.batches("moving join")) == [expected] * 2


def write_bands(directory):
    """Write files of decreasing size, because Spark sorts the files of one micro-batch by size."""
    sides = []
    for seed, name in enumerate(("left", "right")):
        batches = bands.make_batches(N_FILES, 20 * N_FILES, seed=20 + seed, shrink=20)
        n_rows, tables = 0, []
        for rows in batches:
            tables.append(bands.to_table(rows).append_column("at", pa.array(range(n_rows, n_rows + len(rows)))))
            n_rows += len(rows)
        write_batches(tables, directory / name)
        sizes = [path.stat().st_size for path in sorted((directory / name).iterdir())]
        assert sizes == sorted(sizes, reverse=True)
        sides.append(batches)
    return sides


def write_fleets(directory):
    """Write two times per file, with one row per object and time: files of one micro-batch are read in any order."""
    sets = []
    for seed, name in enumerate("ab"):
        rows = list({row[:2]: row for row in fleets.make_rows(2 * N_FILES, 20, 30 + seed, n_ids=40)}.values())
        write_batches([fleets.to_table(part) for part in fleets.cut(rows, N_FILES)], directory / name)
        sets.append(rows)
    return sets


def run_and_kill(pipeline, first, then):
    """Start all streams, kill them during a batch, and continue with other settings until all rows are processed."""
    pipeline.start(**first)
    # The last stream starts when all others have finished a batch.
    pipeline.wait_until(lambda: pipeline.count_begun("moving join") > pipeline.count_commits("moving join") > 0)
    time.sleep(np.random.default_rng(5).uniform(0, 0.5))
    pipeline.kill()
    assert pipeline.count_commits("moving join") < N_FILES
    pipeline.start(**then)
    pipeline.finish()
