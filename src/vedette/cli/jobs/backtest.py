"""`vedette backtest`: reads a history and one or two sets of queries; writes a table, a picture or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vedette.backtesting.backtest import backtest
from vedette.backtesting.result import Backtest
from vedette.cli.jobs.border import read_margin
from vedette.cli.jobs.in_spark import spark_rows
from vedette.cli.jobs.progress import show_progress
from vedette.cli.options import written_to
from vedette.cli.set_options import choose_set, open_registry
from vedette.data.durations import number_or_duration
from vedette.data.schema import Schema
from vedette.errors import FileError, QueryError, count, nearest
from vedette.extras import check_extra
from vedette.files.answers import can_show_progress, check_paths, open_answer, plain_batches
from vedette.files.queries import QueriesFile
from vedette.files.rows import RowsFile, complete, only, type_hint
from vedette.queries.query_options import PER_QUERY
from vedette.queries.query_set import QuerySet

if TYPE_CHECKING:
    from vedette.cli.backtest import EventOptions, TestedQueries

_TABLES = {"query": "by_query", "day": "by_day", "day-query": "by_day_and_query"}


def run_backtest(
    rows: Path,
    time: str,
    key: str | None,
    tested: TestedQueries,
    events: EventOptions,
    schema: str | None,
    by: str,
    out: Path | None,
    picture: Path | None,
    *,
    as_json: bool,
    spark: bool,
    time_zone: str,
    quiet: bool,
) -> str:
    """Write the tables, and return a summary."""
    if by not in _TABLES:
        raise QueryError(f"must be one of: {', '.join(_TABLES)}; got {by!r}{nearest(by, _TABLES)}", option="by")
    if picture is not None:
        check_extra("plots", "--picture")
    check_paths([rows], tested.queries or rows, out)
    history = History(rows, Schema.parse(schema) if schema is not None else None, time, key, time_zone)
    sets = history.load(tested)
    options = {"time": time, "key": key, "against": sets[1] if len(sets) > 1 else None, **_event_options(events, key)}
    with nullcontext() if as_json else open_answer(out) as place:
        result = history.run(sets, options, spark=spark, quiet=quiet or as_json or not can_show_progress(out))
        if picture is not None:
            _write_picture(result, picture)
        if place is None:
            print(json.dumps(result.to_dict(), indent=2, ensure_ascii=False))
        else:
            table = getattr(result, _TABLES[by])
            for batch in plain_batches(table) if table.num_rows else [pa.RecordBatch.from_pylist([], table.schema)]:
                place.write(batch)
    dropped = [
        f"{count(result.counts[name], 'row')} dropped ({why})" for name, why in _DROPPED if result.counts.get(name)
    ]
    drawn = [] if picture is None else [f"picture in {picture}"]
    return ", ".join([str(result), *dropped, *drawn]) + written_to(None if as_json else out)


_DROPPED = (("late", "late: sort the history by time, or use --spark"), ("null_keys", "without a key"))


def _write_picture(result: Backtest, path: Path) -> None:
    try:
        result.save_picture(path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None


def _event_options(events: EventOptions, key: str | None) -> dict[str, Any]:
    """Those that differ from their defaults; without a key there are no events."""
    given = {
        "expire_after": number_or_duration(events.expire_after),
        "dwell": number_or_duration(events.dwell),
        "margin": read_margin(events.margin or []),
        "cooldown": number_or_duration(events.cooldown),
        "once": PER_QUERY if events.once_query else events.once or None,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    return chosen if key is None else {**chosen, "late": events.late, "null_key": events.null_key}


@dataclass(frozen=True)
class History:
    """The rows of a backtest."""

    path: Path
    schema: Schema | None
    time: str
    key: str | None
    time_zone: str

    def load(self, tested: TestedQueries) -> list[QuerySet]:
        """The sets before and after a change, or one."""
        given = [name for name in ("where", "queries", "set_name") if getattr(tested, name) is not None]
        if len(given) != 1:
            raise QueryError("give the queries as one of: --where TEXT, --queries FILE, --set NAME")
        if tested.version is not None and tested.set_name is None:
            raise QueryError("needs --set, whose version it is", option="version")
        if tested.set_name is not None:
            return self._open_versions(tested)
        found = RowsFile.open(self.path, complete(self.path, self.schema, self._names))
        if tested.where is not None:
            texts = [tested.where] if tested.against is None else [tested.where, tested.against]
            return [self._make_set(found.schema, text) for text in texts]
        files = [tested.queries] if tested.against is None else [tested.queries, Path(tested.against)]
        shown_by = found if self.schema is None else None
        return [
            QueriesFile(file, self.time_zone, takes_options=True).load(found.schema, shown_by=shown_by)
            for file in files
            if file
        ]

    def run(self, sets: list[QuerySet], options: dict[str, Any], *, spark: bool, quiet: bool) -> Backtest:
        rows = self._open(sets)
        if spark:
            from vedette.spark.backtest import backtest as backtest_in_spark

            with spark_rows(rows, sets[0].time_zone) as frame:
                return backtest_in_spark(frame, sets[0], **options)
        with show_progress("testing", rows.n_steps, quiet) as advance:

            def read() -> Iterator[pa.RecordBatch]:
                n_rows = 0
                yield rows.no_rows()
                for batch in rows.batches:
                    yield batch
                    n_rows += batch.num_rows
                    advance(rows.steps_done(n_rows), n_rows)

            return backtest(sets[0], read(), **options)

    @property
    def _names(self) -> list[str]:
        return [self.time] if self.key is None else [self.time, self.key]

    def _open(self, sets: list[QuerySet]) -> RowsFile:
        used = [name for queries in sets for name in queries.fields]
        schema = complete(self.path, sets[0].schema, self._names)
        assert schema is not None
        needed = only(schema, [*used, *self._names])
        rows = RowsFile.open(self.path, needed, needs_others=False, hint=type_hint(self.schema))
        rows.check_fields([*used, *self._names])
        return rows

    def _make_set(self, schema: Schema, text: str) -> QuerySet:
        queries = QuerySet(schema, time_zone=self.time_zone)
        queries.add("where", text)
        return queries

    def _open_versions(self, tested: TestedQueries) -> list[QuerySet]:
        registry = open_registry(tested.registry)
        info = choose_set(registry, tested.set_name)
        before = info.version if tested.version is None else tested.version
        wanted = [before] if tested.against is None else [before, _read_version(tested.against)]
        return [registry.follow(info.name, version=version).open(version) for version in wanted]


def _read_version(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise QueryError(f"must be a version of the set, such as 43; got {text!r}", option="against") from None
