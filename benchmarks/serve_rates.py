"""The rates of `vedette serve` over loopback: `python -m benchmarks.serve_rates`.

The service has one core and the load the other. There are 100k zones, and 0.1 events a row.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import http_load
from benchmarks.served_zones import PATH, as_arrow, as_bodies, make_monitor, make_registry, rows_of_vans, serving

N_ZONES, SECONDS = 100_000, 4.0
_BATCH = 1000


def main() -> None:
    server, load = sorted(os.sched_getaffinity(0))[:2]
    with tempfile.TemporaryDirectory() as folder:
        make_registry(f"sqlite:///{folder}/zones.db", N_ZONES)
        os.sched_setaffinity(0, {load})
        with serving(Path(folder), cpu=server) as port:
            make_monitor(port)
            _measure(port)


def _measure(port: int) -> None:
    one = (http_load.request(PATH, body) for first in itertools.count(0, 10_000) for body in _bodies(first))
    prepared = iter(list(itertools.islice(one, 80_000)))  # so that the load costs little
    http_load.closed(port, prepared, 1.0)
    _show("one row a request, 100 connections", http_load.closed(port, prepared, SECONDS), 1)
    _show("the same at 2,000 requests a second", http_load.open_loop(port, prepared, 2000, SECONDS, 100), 1)
    lines = [
        http_load.request(PATH, b"\n".join(_bodies(first)[:_BATCH]), "application/x-ndjson") for first in _starts(1)
    ]
    _show("1,000 rows a request as JSON lines", http_load.closed(port, iter(lines), SECONDS, 4), _BATCH)
    arrow = [
        http_load.request(PATH, as_arrow(rows_of_vans(_BATCH, first)), "application/vnd.apache.arrow.stream")
        for first in _starts(2)
    ]
    _show("1,000 rows a request as Arrow", http_load.closed(port, iter(arrow), SECONDS, 4), _BATCH)


def _bodies(first: int) -> list[bytes]:
    return as_bodies(rows_of_vans(10_000, first))


def _starts(part: int) -> Iterator[int]:
    """The first rows of batches, later than those of earlier parts."""
    return iter(range(part * 10_000_000, part * 10_000_000 + 400 * 10_000, 10_000))


def _show(case: str, load: http_load.Load, n_rows: int) -> None:
    if load.n_failed:
        raise RuntimeError(f"{load.n_failed} requests failed: {load.last!r}")
    median, slowest = (1000 * load.quantile(share) for share in (0.5, 0.99))
    print(f"{case}: {n_rows * load.per_second:,.0f} rows/s, median {median:.1f} ms, 99th percentile {slowest:.1f} ms")


if __name__ == "__main__":
    main()
