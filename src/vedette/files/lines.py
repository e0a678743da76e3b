"""Lines of a file of queries: CSV, JSON lines or Parquet with an id and the columns of their kind.

An error has the number of its line, and the id if the line has one. All queries are added, or none; with `skip_bad`,
all valid ones.
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
from vedette.errors import FileError, QueryError, VedetteError, count, shown
from vedette.files.json_text import read_json
from vedette.files.rows import check_readable, format_of

_CHUNK = 1 << 14  # lines added at once if some may be invalid
_SHOWN = 5  # errors of skipped lines that are printed
_NAMED = 20  # skipped lines that are named by id
WORDS = {"parquet": "row", "geojson": "feature"}  # what a line is called; else a line


@dataclass(frozen=True)
class Kind:
    """A kind of line: its columns, its optional columns, and how their values are read."""

    one: str
    many: str
    columns: tuple[str, ...]  # besides the id
    needs: str  # the content of a line, in words
    take: Callable[..., Any]  # gets the values of all columns; raises QueryError if they are invalid
    more: tuple[str, ...] = ()  # optional columns
    has_rest: bool = False  # whether `take` gets, last, a dict of all other columns


@dataclass
class Lines:
    """The lines of a file: their ids, numbers and values. Invalid lines are in `bad`."""

    path: Path
    kind: Kind
    word: str = "line"
    ids: list[str | int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bad: dict[int, FileError] = field(default_factory=dict)  # by number of the line
    repaired: list[str | int] = field(default_factory=list)  # ids of features whose polygons were repaired

    def add(self, number: int, line_id: object, *values: Any, rest: Mapping[str, Any] | None = None) -> None:
        if not isinstance(line_id, str | int) or isinstance(line_id, bool):
            self.add_bad(number, QueryError(f"the id is {shown(line_id)}; it must be a string or a whole number"))
            return
        try:
            value = self.kind.take(*values, *([rest or {}] if self.kind.has_rest else []))
        except QueryError as error:
            self.add_bad(number, error, line_id)
            return
        if self.ids and type(line_id) is not type(self.ids[0]):
            kinds = {str: "a string", int: "a number"}
            message = f"its id is {kinds[type(line_id)]}, earlier ids are not; use one type of ids"
            self.add_bad(number, QueryError(message), line_id)
            return
        self.ids.append(line_id)
        self.values.append(value)
        self.numbers.append(number)

    def add_bad(self, number: int, error: VedetteError, line_id: str | int | None = None) -> None:
        """Store the error of an invalid line. The message names its query."""
        if line_id is not None and error.query is None:
            error = error.within(f"{self.kind.one} {shown(line_id)}")
        query = line_id if error.query is None else error.query
        message = f"{self.path}, {self.word} {number}: {error}"
        self.bad.setdefault(number, FileError(message, field=error.field, query=query))

    def raise_bad(self) -> None:
        """Raise the error of the first invalid line, if there is one."""
        if self.bad:
            raise self.bad[min(self.bad)] from None

    def check(self) -> None:
        if not self.ids and not self.bad:
            raise FileError(f"{self.path} has no {self.kind.many}; it needs rows with {self.kind.needs}")

    def take(self, places: Sequence[int]) -> Lines:
        """Some of the lines; they share `bad` and `repaired`."""
        ids, values = [self.ids[place] for place in places], [self.values[place] for place in places]
        numbers = [self.numbers[place] for place in places]
        return Lines(self.path, self.kind, self.word, ids, values, numbers, self.bad, self.repaired)

    def keep_first(self) -> Lines:
        """The lines whose ids are not in an earlier line; the others are bad."""
        if len(set(self.ids)) == len(self.ids):
            return self
        first: dict[str | int, int] = {}
        for number, line_id in zip(self.numbers, self.ids, strict=True):
            if first.setdefault(line_id, number) != number:
                self.add_bad(number, QueryError(self.repeats(first[line_id])), line_id)
        return self.take([place for place, number in enumerate(self.numbers) if number not in self.bad])

    def repeats(self, number: int) -> str:
        """The fault of a line that has the id of an earlier one."""
        return f"its id is also in {self.word} {number}; each id must be unique in a file"

    def add_to(self, add: Callable[[list[Any], list[Any]], None], *, skip_bad: bool) -> None:
        """Add all lines: `add` gets ids and values, and adds all of them or none."""
        if not skip_bad:
            self.raise_bad()
            try:
                add(self.ids, self.values)
                return
            except QueryError:
                pass  # the invalid line is found below
        for start in range(0, len(self.ids), _CHUNK):
            self._add_between(start, min(start + _CHUNK, len(self.ids)), add, skip_bad)

    def _add_between(self, start: int, end: int, add: Callable[[list[Any], list[Any]], None], skip_bad: bool) -> None:
        """Add the lines from `start` to `end`; halve them if they cannot be added together."""
        if start == end:
            return
        try:
            add(self.ids[start:end], self.values[start:end])
        except QueryError as error:
            if end - start > 1:
                middle = (start + end) // 2
                self._add_between(start, middle, add, skip_bad)
                self._add_between(middle, end, add, skip_bad)
                return
            self.add_bad(self.numbers[start], error, self.ids[start])
            if not skip_bad:
                self.raise_bad()

    @property
    def notes(self) -> list[str]:
        """Notes for a summary: how many lines were skipped and repaired."""
        skipped = [f"{count(len(self.bad), self.kind.one, self.kind.many)} skipped"] if self.bad else []
        return skipped + ([f"{count(len(self.repaired), 'polygon')} repaired"] if self.repaired else [])

    def report(self) -> None:
        """Print on standard error which lines were skipped and which were repaired."""
        errors = [self.bad[number] for number in sorted(self.bad)]
        for error in errors[:_SHOWN]:
            print(f"vedette: skipped {error}", file=sys.stderr)
        if self.bad:
            names = _name([error.query for error in errors if error.query is not None])
            skipped = count(len(self.bad), f"bad {self.kind.one}", f"bad {self.kind.many}")
            print(f"vedette: skipped {skipped} of {self.path}{names}", file=sys.stderr)
        if self.repaired:
            repaired = f"repaired {count(len(self.repaired), 'polygon')} of {self.path}{_name(self.repaired)}"
            print(f"vedette: {repaired}", file=sys.stderr)


def read_lines(path: Path, kind: Kind, name: str | None = None) -> Lines:
    """The lines of a CSV, JSON lines or Parquet file. Messages use `name`, or the path."""
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
            raise FileError(f"{lines.path}, line 1: invalid CSV: {error}") from None
        header = [name.lower() for name in written]
        _check_columns(lines, header)
        names = ("id", *lines.kind.columns, *lines.kind.more)
        places = [header.index(name) if name in header else -1 for name in names]
        others = [place for place, name in enumerate(header) if name and name not in names and lines.kind.has_rest]
        for number, record in _numbered(reader, lines):
            if len(record) != len(header):
                got = f"it has {len(record)} columns, the first line has {len(header)}"
                lines.add_bad(number, QueryError(f"{got}; put texts with commas into quotes"))
            else:
                rest = {written[place]: record[place] for place in others}
                lines.add(number, *(None if place < 0 else record[place] for place in places), rest=rest)


def _numbered(reader: Any, lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """The records with the line each starts on; empty lines are skipped."""
    while True:
        number = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except (csv.Error, UnicodeDecodeError) as error:
            lines.add_bad(number, QueryError(f"invalid CSV: {error}"))
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
                lines.add_bad(number, QueryError(f"invalid JSON: {what}"))
                continue
            if not isinstance(record, dict) or not all(name in record for name in needed):
                lines.add_bad(
                    number, QueryError(f"it is not an object with {_listed([repr(name) for name in needed])}")
                )
            elif twins := find_twins(tuple(record)).intersection(names):
                lines.add_bad(
                    number, QueryError(f"it has {min(twins)!r} more than once, ignoring case; keep one of them")
                )
            else:
                rest = {name: value for name, value in record.items() if name not in names}
                lines.add(number, *(record.get(name) for name in names), rest=rest)


def _read_parquet(path: Path, lines: Lines) -> None:
    try:
        _check_columns(lines, [name.lower() for name in pq.read_schema(path).names])
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise FileError(f"{path} is not a Parquet file: {error}") from None
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
            raise FileError(f"{lines.path} has {names.count(name)} columns {name!r}, ignoring case; keep one of them")
    missing = [name for name in needed if name not in names]
    if missing:
        raise FileError(
            f"{lines.path} has no column {missing[0]!r}; a file of {lines.kind.many} has columns {_listed(needed)}, "
            f"this one has: {', '.join(names) or 'none'}"
        )


def _name(ids: Sequence[str | int]) -> str:
    """A colon and the ids, or the first of many."""
    if not ids:
        return ""
    return f": {', '.join(map(shown, ids[:_NAMED]))}{', ...' if len(ids) > _NAMED else ''}"


def _listed(words: list[str]) -> str:
    """Words as a list in a sentence: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]])
