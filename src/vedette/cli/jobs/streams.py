"""Files of rows that are joined as streams: their options, and their rows in time order.

Files are read in parallel, one batch at a time. A row is processed once every file has been read up to its time. So the
streams advance together, and rows come in time order as far as each file is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.schema import Schema
from vedette.errors import FileError, QueryError, RowError, nearest
from vedette.files.answers import plain_type
from vedette.files.rows import RowsFile, complete, only, type_hint
from vedette.operators.window_join.rows import read_join_rows

MIN_ROWS, MAX_ROWS = 1 << 10, 1 << 18  # of a step
_RESERVED = ("query", "index", "time_zone")  # names of a column of the answer and of options
MAX_LINES = 1 << 20  # of an answer; after a larger one, the next step has fewer rows


@dataclass(frozen=True)
class Stream:
    """A file of rows under the name of its stream."""

    name: str
    path: Path
    declared: Schema | None
    columns: dict[str, str | None]  # by role: time, id, value
    carried: Sequence[str] = ()  # columns that answers have

    @classmethod
    def read(
        cls,
        files: Mapping[str, Path],
        options: Mapping[str, Mapping[str, str]],
        defaults: Mapping[str, str | None],
        carried: Mapping[str, Sequence[str]],
    ) -> list[Stream]:
        """The streams of a command. `options` are by name and stream; `defaults` are the default columns by role.

        `carried` are the columns that answers have, by stream.
        """
        streams = []
        for name, path in files.items():
            columns = {role: options[role].get(name, column) for role, column in defaults.items()}
            schema = options["schema"].get(name)
            streams.append(cls(name, path, None if schema is None else Schema.parse(schema), columns, carried[name]))
        return streams

    @property
    def needed(self) -> list[str]:
        return [*(name for name in self.columns.values() if name is not None), *self.carried]

    @property
    def schema(self) -> Schema:
        """The fields of the file, including the needed columns."""
        return self.open(complete(self.path, self.declared, self.needed)).schema

    def open(self, schema: Schema | None, *, needs_others: bool = True) -> RowsFile:
        hint = type_hint(self.declared, f"--schema {self.name}='...'")
        exact = [] if self.columns["id"] is None else [self.columns["id"]]
        return RowsFile.open(self.path, schema, needs_others=needs_others, exact=exact, hint=hint)

    def open_fields(self, schema: Schema, names: Sequence[str]) -> RowsFile:
        """The file with only these fields of the schema and the needed columns."""
        return self.open(only(schema, [*names, *self.needed]), needs_others=False)

    def no_rows(self) -> pa.RecordBatch:
        return self.open(complete(self.path, self.declared, self.needed)).no_rows()

    def carried_types(self, columns: pa.Schema) -> dict[str, pa.DataType]:
        """The columns of answers by their names there, for rows with these columns."""
        known = {field.name.lower(): plain_type(field.type) for field in columns}
        return {f"{self.name}_{name}": known.get(name.lower(), pa.string()) for name in self.carried}

    def place(self, error: RowError, n_before: int) -> RowError:
        """An error about a batch of the file, with the file and the number of rows before the batch."""
        return error.within(f"{self.path}, after row {n_before:,}" if n_before else self.path)


def read_options(
    streams: Sequence[str], **given: tuple[Sequence[str] | None, str | None, str | None]
) -> dict[str, dict[str, str]]:
    """Values of options by stream. Texts are for all streams or NAME=...; --left-... and --right-... override them.

    >>> read_options(["left", "right"], time=(["ts", "right=at"], None, None), id=(None, "key", None))
    {'time': {'left': 'ts', 'right': 'at'}, 'id': {'left': 'key'}}
    """
    options = {}
    for option, (texts, left, right) in given.items():
        sides = [f"{side}={text}" for side, text in (("left", left), ("right", right)) if text is not None]
        options[option] = _read_by_stream(f"--{option}", [*(texts or []), *sides], streams)
    return options


def read_carried(streams: Sequence[str], texts: Sequence[str] | None) -> dict[str, list[str]]:
    """Columns of answers by stream, from names for all streams and NAME=COLUMN for one.

    >>> read_carried(["left", "right"], ["price", "right=city"])
    {'left': ['price'], 'right': ['price', 'city']}
    """
    carried: dict[str, list[str]] = {stream: [] for stream in streams}
    for text in texts or ():
        stream, is_named, column = text.partition("=")
        if is_named and stream not in streams:
            raise QueryError(
                f"--column names an unknown stream {stream!r}; the streams are: "
                f"{', '.join(streams)}{nearest(stream, streams)}"
            )
        for each in [stream] if is_named else streams:
            carried[each].append(column if is_named else text)
    return carried


def _read_by_stream(option: str, texts: Sequence[str], streams: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}  # the value for all streams has the key ""
    for text in texts:
        name, is_named, rest = text.partition("=")
        stream, value = (name.strip(), rest.strip()) if is_named else ("", text.strip())
        if stream and stream not in streams:
            raise QueryError(
                f"{option} names an unknown stream {stream!r}; the streams are: "
                f"{', '.join(streams)}{nearest(stream, streams)}"
            )
        if stream in values or not value or (is_named and not stream):
            raise QueryError(f"give {option} once for all streams, or once per stream as NAME=...; got {text!r}")
        values[stream] = value
    return {stream: values.get(stream, values.get("", "")) for stream in streams if stream in values or "" in values}


def read_streams(left: Path | None, right: Path | None, more: Sequence[str]) -> dict[str, Path]:
    """The files by stream: --left and --right, and those of --stream NAME=FILE."""
    files = {name: path for name, path in (("left", left), ("right", right)) if path is not None}
    for text in more:
        name, is_named, path = text.partition("=")
        if not is_named or not name.isidentifier() or not path or name in (*files, *_RESERVED):
            raise FileError(
                f"--stream must be a new name and a file, such as quotes=quotes.parquet; {', '.join(_RESERVED)} are "
                f"reserved names; got {text!r}"
            )
        files[name] = Path(path)
    if len(files) < 2:
        raise FileError(
            f"a join needs at least two files: --left and --right, or --stream NAME=FILE for each; got: "
            f"{', '.join(files) or 'none'}"
        )
    return files


@dataclass
class Pace:
    """The number of rows per step, adapted so that answers fit into memory."""

    n_rows: int = field(default_factory=lambda: MIN_ROWS)

    def note(self, n_lines: int) -> None:
        """Adapt to the number of lines of the last answer."""
        if n_lines > MAX_LINES:
            self.n_rows = max(self.n_rows // 2, 1)
        elif n_lines < MAX_LINES // 4:
            self.n_rows = min(self.n_rows * 2, MAX_ROWS)


@dataclass
class Source:
    """The rows of one stream that were read and not yet processed, in time order."""

    stream: Stream
    schema: Schema
    rows: RowsFile
    time_zone: str
    n_read: int = 0
    has_ended: bool = False
    waiting: pa.Table | None = None
    times: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))

    def read(self) -> None:
        """Read the next batch that has rows. Rows without a time or an id are an error."""
        columns = self.stream.columns
        for batch in self.rows.batches:
            try:
                read = read_join_rows(
                    batch, self.stream.name, self.schema, [], self.time_zone, columns["time"], columns["id"]
                )
            except RowError as error:
                raise self.stream.place(error, self.n_read) from None
            numbers = np.arange(self.n_read, self.n_read + batch.num_rows)
            self.n_read += batch.num_rows
            if batch.num_rows:
                table = pa.Table.from_batches([batch])
                if columns["id"] is None:
                    table = table.append_column(self.id_column, pa.array(numbers))
                self._append(table, read.times)
                return
        self.has_ended = True

    def _append(self, table: pa.Table, times: NDArray[Any]) -> None:
        if self.waiting is not None and len(self.times):
            table, times = pa.concat_tables([self.waiting, table]), np.concatenate([self.times, times])
        if (np.diff(times) < 0).any():
            order = np.argsort(times, kind="stable")
            table, times = table.take(pa.array(order)), times[order]
        self.waiting, self.times = table, times

    def take_until(self, time: Any) -> pa.Table | None:
        """The waiting rows up to a time, inclusive; None if there are none."""
        n = int(np.searchsorted(self.times, time, side="right"))
        if self.waiting is None or not n:
            return None
        taken, self.waiting, self.times = self.waiting.slice(0, n), self.waiting.slice(n), self.times[n:]
        return taken

    @property
    def id_column(self) -> str:
        """The column of the ids. Without one, the column of the rows' numbers in the file."""
        name = self.stream.columns["id"]
        if name is None:
            name = "number"
            while self.schema.find(name) is not None:
                name += "_"
        return name

    @property
    def is_done(self) -> bool:
        return self.has_ended and not len(self.times)


def take_by_time(sources: Sequence[Source], pace: Pace) -> Iterator[tuple[Mapping[str, pa.Table], Any]]:
    """Rows by stream in time order, each time with the time up to which they reach."""
    for source in sources:
        source.read()
    while not all(source.is_done for source in sources):
        reading = [source for source in sources if not source.has_ended]
        behind = [source for source in reading if not len(source.times)]
        horizon = min((source.times[-1] for source in reading if len(source.times)), default=None)
        # More rows with the last time of a batch may follow, so rows with that time wait.
        ready = [
            source.times if horizon is None else source.times[: np.searchsorted(source.times, horizon)]
            for source in sources
        ]
        if behind or not any(map(len, ready)):
            for source in behind or [source for source in reading if source.times[-1] == horizon]:
                source.read()
            continue
        times = np.concatenate([each for each in ready if len(each)])
        last = np.partition(times, pace.n_rows - 1)[pace.n_rows - 1] if len(times) > pace.n_rows else times.max()
        taken = {source.stream.name: source.take_until(last) for source in sources}
        yield {name: table for name, table in taken.items() if table is not None}, last
