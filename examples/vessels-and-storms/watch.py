"""Vessels and storms: which alert zones will meet which storms and when, how predictions change, and what happened.

Run: python examples/vessels-and-storms/watch.py
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from picture import N_NEWS, Frame, News, Pair, Span, animate, clock, draw
from sea import Sea

import vedette as vd

LONGEST = 60  # minutes within which every object updates
SHIFT = 3  # minutes by which a meeting must move to be news
SHOWN = 36


@dataclass
class Coming:
    """A predicted meeting."""

    since: float
    start: float  # as last reported


@dataclass
class Watch:
    """Known meetings, past and predicted, and the news about them."""

    known: dict[Pair, Counter[Span]] = field(default_factory=lambda: defaultdict(Counter))
    met: set[Pair] = field(default_factory=set)  # that meet now
    coming: dict[Pair, Coming] = field(default_factory=dict)
    news: list[News] = field(default_factory=list)
    ahead: list[float] = field(default_factory=list)  # how long before its start each meeting was predicted
    n_called_off: int = 0

    def pass_time(self, events: pa.Table) -> None:
        """Report meetings that have begun or ended as time has passed."""
        for event in events.to_pylist():
            pair = event["a"], event["b"]
            self._turn(event["time"], self.met | {pair} if event["event"] == "enter" else self.met - {pair})

    def take(self, now: float, changes: pa.Table, pairs: pa.Table) -> None:
        """Add up the signs: the remaining pairs are final for the past and predicted for the future."""
        for change in changes.to_pylist():
            spans, span = self.known[change["a"], change["b"]], (change["start"], change["end"])
            spans[span] += change["sign"]
            if not spans[span]:
                del spans[span]
        self._turn(now, {(pair["a"], pair["b"]) for pair in pairs.to_pylist()})

    def warn(self, now: float, events: pa.Table) -> None:
        """Report what is new about predicted meetings; `events` are in time order."""
        enters = events.filter(pc.equal(events["event"], "enter")).to_pylist()
        starts = {(event["a"], event["b"]): event["time"] for event in reversed(enters)}  # the next of each pair
        for pair in [pair for pair in self.coming if pair not in starts]:
            self.n_called_off += 1
            self._report(now, pair, f"will not meet cell {pair[1]} at {clock(self.coming.pop(pair).start)}")
        for pair, start in sorted(starts.items(), key=lambda item: item[1]):
            known = self.coming.setdefault(pair, Coming(now, start))
            shift = start - known.start
            if known.since == now:
                self._report(now, pair, f"will meet cell {pair[1]} at {clock(start)}")
            elif abs(shift) >= SHIFT:
                words = f"{abs(shift):.0f} min {'later' if shift > 0 else 'earlier'}"
                self._report(now, pair, f"will meet cell {pair[1]} at {clock(start)}, {words}")
                known.start = start

    def meetings(self, until: float) -> dict[Pair, list[Span]]:
        """All meetings up to a time. A meeting that continues across updates counts once."""
        return {pair: list(_join(sorted(spans), until)) for pair, spans in self.known.items() if spans}

    def spans(self) -> list[tuple[Pair, Span]]:
        """All known spans."""
        return [(pair, span) for pair, spans in self.known.items() for span in spans]

    def _turn(self, now: float, met: set[Pair]) -> None:
        for pair in sorted(met - self.met):
            self._report(now, pair, f"MEETS cell {pair[1]}")
            if pair in self.coming:
                self.ahead.append(now - self.coming.pop(pair).since)
        for pair in sorted(self.met - met):
            self._report(now, pair, f"is clear of cell {pair[1]}")
        self.met = met

    def _report(self, now: float, pair: Pair, words: str) -> None:
        self.news.append((now, pair, words))


def _join(spans: list[Span], until: float) -> Iterator[Span]:
    """Adjacent spans merged, up to a time."""
    begun: Span | None = None
    for start, end in spans:
        if start > until:
            break
        if begun is not None and start - begun[1] < 1e-6:
            begun = (begun[0], end)
            continue
        if begun is not None:
            yield begun
        begun = (start, end)
    if begun is not None:
        yield begun[0], min(begun[1], until)


def watch(vessels: pa.Table, storms: pa.Table, frame_times: list[float]) -> tuple[Watch, list[Frame]]:
    """Process the updates in time order. Returns the final state and the state at each frame."""
    moving = vd.MovingJoin(max_update_interval=LONGEST)
    seen, frames = Watch(), []
    for now in np.unique([*vessels["time"].to_pylist(), *storms["time"].to_pylist(), *frame_times]).tolist():
        if moving.time is not None:
            seen.pass_time(moving.events(until=now))
        a, b = (table.filter(pc.equal(table["time"], now)) for table in (vessels, storms))
        changes = moving.update(a=a, b=b, time=now)
        seen.take(now, changes, moving.pairs(at=now))
        seen.warn(now, moving.events())
        if now in frame_times:
            coming = {pair: known.start for pair, known in seen.coming.items()}
            frames.append(Frame(now, sorted(seen.met), coming, seen.spans(), seen.news[-N_NEWS:]))
    return seen, frames


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vessels", type=int, default=14)
    parser.add_argument("--storms", type=int, default=12)
    parser.add_argument("--hours", type=int, default=6)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--every", type=int, default=5, help="minutes from frame to frame")
    parser.add_argument("--output-dir", type=Path, default=Path("demo-report/vessels-and-storms"))
    chosen = parser.parse_args(arguments)

    folder: Path = chosen.output_dir
    folder.mkdir(parents=True, exist_ok=True)
    minutes = 60 * chosen.hours
    sea = Sea.build(chosen.seed, chosen.vessels, chosen.storms, minutes)
    vessels, storms = sea.reports(), sea.pictures()
    pq.write_table(vessels, folder / "vessels.parquet")
    pq.write_table(storms, folder / "storms.parquet")
    print(
        f"{chosen.vessels} vessels, {chosen.storms} storm cells, {chosen.hours} hours: {vessels.num_rows:,} reports, "
        f"{storms.num_rows:,} radar echoes\n"
    )

    frame_times = np.arange(0.0, minutes + 1, chosen.every).tolist()
    seen, frames = watch(vessels, storms, frame_times)
    for time, (vessel, _), words in seen.news[:SHOWN]:
        print(f"  {clock(time)}  {vessel:8} {words}")
    if len(seen.news) > SHOWN:
        print(f"  ... and {len(seen.news) - SHOWN} more")
    n_meetings = sum(map(len, seen.meetings(minutes).values()))
    print(f"\n{n_meetings} meetings, {len(seen.ahead)} of them predicted", end="")
    if seen.ahead:
        print(f", {statistics.median(seen.ahead):.0f} minutes ahead in the median", end="")
    print(f"; {seen.n_called_off} predicted meetings did not happen")

    print(f"Drawing {len(frames)} frames ...", flush=True)
    animate(sea, vessels, storms, frames, folder / "bay.gif")
    draw(sea, vessels, storms, frames[len(frames) // 2], folder / "bay.png")
    print(f"Pictures: {folder / 'bay.gif'}, {folder / 'bay.png'}")


if __name__ == "__main__":
    main()
