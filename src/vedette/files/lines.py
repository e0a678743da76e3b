"""Lines of a file that become standing queries: CSV, JSON lines or Parquet with an id and the columns of its kind.

Whatever is wrong with a line is told with its number. Nothing is half loaded: either all stand, or, with `skip_bad`,
all that are right.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vedette.data.frames import find_twins
from vedette.errors import FileError, QueryError, count
from vedette.files.json_text import read_json
from vedette.files.rows import check_readable, format_of

_CHUNK = 1 << 14  # lines added at once where some may be wrong
_SHOWN = 5  # of the bad lines, when they are skipped
WORDS = {"parquet": "row", "geojson": "feature"}  # what a line is called; else a line


@dataclass(frozen=True)
class Kind:
    """What stands on a line: its columns, those that may lack, and how their values are read."""

    one: str
    many: str
    columns: tuple[str, ...]  # beside the id
    needs: str  # what a line is made of, in words
    take: Callable[..., Any]  # gets the id and the values of all columns; raises QueryError where they are wrong
    more: tuple[str, ...] = ()  # columns that may be there
    has_rest: bool = False  # whether `take` gets, last, a dict of the columns that are there beside all of these


@dataclass
class Lines:
    """Lines as they stand in a file: ids, and what else was read of each."""

    path: Path
    kind: Kind
    word: str = "line"
    ids: list[str | int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bad: list[FileError] = field(default_factory=list)

    def add(self, number: int, line_id: object, *values: Any, rest: Mapping[str, Any] | None = None) -> None:
        if not isinstance(line_id, str | int) or isinstance(line_id, bool) or line_id == "":
            self.add_bad(number, f"the id is {line_id!r}; it takes a string or a whole number")
            return
        try:
            value = self.kind.take(line_id, *values, *([rest or {}] if self.kind.has_rest else []))
        except QueryError as error:
            self.add_bad(number, error.reason)
            return
        if self.ids and type(line_id) is not type(self.ids[0]):
            kinds = {str: "a string", int: "a number"}
            self.add_bad(number, f"the id {line_id!r} is {kinds[type(line_id)]}, earlier ones are not; use one kind")
            return
        self.ids.append(line_id)
        self.values.append(value)
        self.numbers.append(number)

    def add_bad(self, number: int, reason: str) -> None:
        self.bad.append(FileError(f"{self.path}, {self.word} {number}: {reason}"))

    def check(self) -> None:
        if not self.ids and not self.bad:
            raise FileError(f"{self.path} holds no {self.kind.many}; it needs rows with {self.kind.needs}")

    def take(self, places: Sequence[int]) -> Lines:
        """Some of the lines; what is bad about them is told with that of the others."""
        ids, values = [self.ids[place] for place in places], [self.values[place] for place in places]
        return Lines(self.path, self.kind, self.word, ids, values, [self.numbers[place] for place in places], self.bad)

    def stand(self, add: Callable[[list[Any], list[Any]], None], *, skip_bad: bool) -> None:
        """Let all lines stand: `add` takes ids and values, as a whole or not at all."""
        if self.bad and not skip_bad:
            raise self.bad[0]
        if not skip_bad:
            try:
                add(self.ids, self.values)
                return
            except QueryError:
                pass  # one of them; found below
        for start in range(0, len(self.ids), _CHUNK):
            self._stand_between(start, min(start + _CHUNK, len(self.ids)), add, skip_bad)

    def _stand_between(self, start: int, end: int, add: Callable[[list[Any], list[Any]], None], skip_bad: bool) -> None:
        """Add the lines from `start` to `end`, halving where they cannot be added together."""
        if start == end:
            return
        try:
            add(self.ids[start:end], self.values[start:end])
        except QueryError as error:
            if end - start > 1:
                middle = (start + end) // 2
                self._stand_between(start, middle, add, skip_bad)
                self._stand_between(middle, end, add, skip_bad)
                return
            self.add_bad(self.numbers[start], str(error))
            if not skip_bad:
                raise self.bad[-1] from None

    def tell_bad(self) -> None:
        """Say on standard error what was skipped, if anything was."""
        for error in self.bad[:_SHOWN]:
            print(f"vedette: skipped {error}", file=sys.stderr)
        if self.bad:
            skipped = count(len(self.bad), f"bad {self.kind.one}", f"bad {self.kind.many}")
            print(f"vedette: skipped {skipped} of {self.path}", file=sys.stderr)


def read_lines(path: Path, kind: Kind, name: str | None = None) -> Lines:
    """The lines of a CSV, JSON lines or Parquet file, which messages call by its path, or by another name."""
    form = format_of(path)
    check_readable(path)
    lines = Lines(Path(name or path), kind, WORDS.get(form, "line"))
    {"csv": _read_csv, "jsonl": _read_jsonl, "parquet": _read_parquet}[form](path, lines)
    lines.check()
    return lines


def _read_csv(path: Path, lines: Lines) -> None:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            written = [name.strip() for name in next(reader, [])]
        except (csv.Error, UnicodeDecodeError) as error:
            raise FileError(f"{lines.path}, line 1: it is no CSV: {error}") from None
        header = [name.lower() for name in written]
        _check_columns(lines, header)
        names = ("id", *lines.kind.columns, *lines.kind.more)
        places = [header.index(name) if name in header else -1 for name in names]
        others = [place for place, name in enumerate(header) if name and name not in names and lines.kind.has_rest]
        for number, record in _numbered(reader, lines):
            if len(record) != len(header):
                got = f"it has {len(record)} columns, the first line has {len(header)}"
                lines.add_bad(number, f"{got}; put texts with commas into quotes")
            else:
                rest = {written[place]: record[place] for place in others}
                lines.add(number, *(None if place < 0 else record[place] for place in places), rest=rest)


def _numbered(reader: Any, lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """The records with the line each starts on; empty lines are passed over."""
    while True:
        number = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except (csv.Error, UnicodeDecodeError) as error:
            lines.add_bad(number, f"it is no CSV: {error}")
            if isinstance(error, UnicodeDecodeError):
                return
            continue
        if record:
            yield number, record


def _read_jsonl(path: Path, lines: Lines) -> None:
    needed = ("id", *lines.kind.columns)
    names = (*needed, *lines.kind.more)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = read_json(line)
            except ValueError as error:
                what = error.msg if isinstance(error, json.JSONDecodeError) else error
                lines.add_bad(number, f"it is no JSON: {what}")
                continue
            if not isinstance(record, dict) or not all(name in record for name in needed):
                lines.add_bad(number, f"it is no object with {_listed([repr(name) for name in needed])}")
            elif twins := find_twins(tuple(record)).intersection(names):
                lines.add_bad(number, f"it has {min(twins)!r} more than once, letter case aside; keep one of them")
            else:
                rest = {name: value for name, value in record.items() if name not in names}
                lines.add(number, *(record.get(name) for name in names), rest=rest)


def _read_parquet(path: Path, lines: Lines) -> None:
    try:
        _check_columns(lines, [name.lower() for name in pq.read_schema(path).names])
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise FileError(f"{path} is no Parquet file: {error}") from None
    by_name = {name.lower(): name for name in table.column_names}
    nothing = [None] * table.num_rows
    names = ("id", *lines.kind.columns, *lines.kind.more)
    columns = [table[by_name[name]].to_pylist() if name in by_name else nothing for name in names]
    others = [name for name in table.column_names if name.lower() not in names] if lines.kind.has_rest else []
    rests = table.select(others).to_pylist() if others else nothing
    for number, (*values, rest) in enumerate(zip(*columns, rests, strict=True), start=1):
        lines.add(number, *values, rest=rest)


def _check_columns(lines: Lines, names: list[str]) -> None:
    needed = ["id", *lines.kind.columns]
    for name in (*needed, *lines.kind.more):
        if names.count(name) > 1:
            raise FileError(
                f"{lines.path} has {names.count(name)} columns {name!r}, letter case aside; keep one of them"
            )
    missing = [name for name in needed if name not in names]
    if missing:
        raise FileError(
            f"{lines.path} lacks the column {missing[0]!r}; a {lines.kind.many} file has columns {_listed(needed)}, "
            f"this has: {', '.join(names) or 'none'}"
        )


def _listed(words: list[str]) -> str:
    """Words as in a sentence: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]])
