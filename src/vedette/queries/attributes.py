"""What queries have besides their predicates, by position: options of border monitoring, and metadata.

A set whose queries have none of them stores nothing. An option is a column of numbers, in which NaN means the default
of the monitor. Metadata is a JSON object as text, and is read only for the queries of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.errors import QueryError
from vedette.native.damage import check, check_shape, check_type
from vedette.queries.metadata import write_metadata
from vedette.queries.query_options import (
    DURATIONS,
    IN_UNITS,
    ONCE,
    OPTIONS,
    check_names,
    read_options,
    to_number,
    to_value,
)


class Attributes:
    """Columns of `n` queries. `append` is lazy, so that many small changes of a large set are cheap."""

    def __init__(self, n: int = 0) -> None:
        self._n = n
        self._values: dict[str, NDArray[np.float64]] = {}
        self._are_numbers: dict[str, NDArray[np.bool_]] = {}  # of IN_UNITS: given as numbers, not as texts
        self._metadata: pa.LargeStringArray | None = None  # JSON, or an empty text
        self._later: list[Attributes] = []

    def __len__(self) -> int:
        return self._n + sum(each._n for each in self._later)

    @property
    def nbytes(self) -> int:
        self._merge()
        arrays = [*self._values.values(), *self._are_numbers.values(), *([self._metadata] if self._metadata else [])]
        return sum(int(each.nbytes) for each in arrays)

    @property
    def has_metadata(self) -> bool:
        self._merge()
        return self._metadata is not None

    @classmethod
    def of_columns(cls, n: int, options: Mapping[str, Any], metadata: Sequence[str | None] | None = None) -> Attributes:
        """From a value per option for all queries, or a sequence of values with one per query; None is the default."""
        check_names(options)
        made = cls(n)
        for name, given in options.items():
            values = [given] * n if _is_one(given) else _as_list(given)
            if len(values) != n:
                words = f"has {len(values)} values for {n} queries; give one for all, or one per query"
                raise QueryError(words, option=name)
            made._set(name, values)
        if metadata is not None and any(metadata):
            made._metadata = pa.array([each or "" for each in metadata], pa.large_string())
        return made

    @classmethod
    def of_texts(
        cls, n: int, options: Sequence[str | None] | None, metadata: Sequence[str | None] | None
    ) -> Attributes:
        """From JSON objects, or None, with one per query."""
        parsed: dict[str | None, dict[str, Any]] = {None: {}}
        for text in set(options or ()):
            parsed[text] = read_options(json.loads(text)) if text else {}
        rows = [parsed[text] for text in options or ()]
        names = [name for name in OPTIONS if any(name in each for each in parsed.values())]
        return cls.of_columns(n, {name: [row.get(name) for row in rows] for name in names}, metadata)

    @classmethod
    def of_metadata(cls, n: int, metadata: Any, ids: Sequence[Any]) -> Attributes:
        """Metadata only: one dict for all queries, or a sequence with one per query."""
        return cls.of_columns(n, {}, None if metadata is None else write_metadata(metadata, ids))

    def _set(self, name: str, values: Sequence[Any]) -> None:
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and name != "once":
            self._set_numbers(name, values.astype(np.float64))
            return
        known: dict[Any, tuple[float, bool]] = {}
        numbers, flags = np.full(self._n, np.nan), np.ones(self._n, np.bool_)
        for place, value in enumerate(values):
            if value is None or value != value:  # a missing value of pandas
                continue
            key = (type(value), value)
            if key not in known:
                known[key] = to_number(name, read_options({name: value})[name])
            numbers[place], flags[place] = known[key]
        if known:
            self._values[name] = numbers
            if name in IN_UNITS:
                self._are_numbers[name] = flags

    def _set_numbers(self, name: str, numbers: NDArray[np.float64]) -> None:
        given = numbers[~np.isnan(numbers)]
        for value in given[[given.argmin(), given.argmax()]].tolist() if len(given) else ():
            read_options({name: value})  # raises if it is out of range
        if len(given):
            self._values[name] = numbers
            if name in IN_UNITS:
                self._are_numbers[name] = np.ones(self._n, np.bool_)

    def append(self, other: Attributes) -> None:
        """Add the attributes of more queries."""
        self._later.append(other)
        if not self._values and self._metadata is None and not other._values and other._metadata is None:
            self._merge()

    def take(self, positions: NDArray[Any]) -> Attributes:
        self._merge()
        taken = Attributes(len(positions))
        taken._values = {name: values[positions] for name, values in self._values.items()}
        taken._are_numbers = {name: flags[positions] for name, flags in self._are_numbers.items()}
        if self._metadata is not None:
            taken._metadata = self._metadata.take(pa.array(positions))
        return taken

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        """By position: the number of an option, or NaN; None if no query has the option."""
        self._merge()
        return self._values.get(name)

    def given_as_numbers(self, name: str) -> NDArray[np.bool_]:
        """By position: whether an option was given as a number, and not as a text with a unit."""
        self._merge()
        return self._are_numbers.get(name, np.ones(self._n, np.bool_))  # margins of earlier files are numbers

    def metadata_at(self, positions: NDArray[Any]) -> list[dict[str, Any]]:
        """The metadata of some queries."""
        self._merge()
        if self._metadata is None:
            return [{} for _ in positions]
        texts = self._metadata.take(pa.array(positions)).to_pylist()
        return [json.loads(text) if text else {} for text in texts]

    def options_at(self, position: int) -> dict[str, Any]:
        """The options of one query, as they can be passed to `add`."""
        self._merge()
        found = {name: float(values[position]) for name, values in self._values.items()}
        is_number = {name: bool(flags[position]) for name, flags in self._are_numbers.items()}
        return {name: to_value(name, each, is_number.get(name, True)) for name, each in found.items() if each == each}

    def without_metadata(self) -> Attributes:
        self._merge()
        made = Attributes(self._n)
        made._values, made._are_numbers = self._values, self._are_numbers
        return made

    def content(self) -> Iterator[bytes]:
        """The attributes as bytes, for the mark of a version."""
        self._merge()
        for name, values in self._values.items():
            yield name.encode() + values.tobytes()
        if not self.given_as_numbers("margin").all():
            yield self._are_numbers["margin"].tobytes()
        if self._metadata is not None:
            yield "\0".join(self._metadata.to_pylist()).encode("utf-8", "surrogatepass")

    def _merge(self) -> None:
        if not self._later:
            return
        parts, self._later = [self._flat(), *self._later], []
        for name in dict.fromkeys(name for part in parts for name in part._values):
            self._values[name] = np.concatenate([part._values.get(name, np.full(part._n, np.nan)) for part in parts])
            if name in IN_UNITS:
                flags = [part._are_numbers.get(name, np.ones(part._n, np.bool_)) for part in parts]
                self._are_numbers[name] = np.concatenate(flags)
        if any(part._metadata is not None for part in parts):
            self._metadata = pa.concat_arrays([part._texts() for part in parts])
        self._n = sum(part._n for part in parts)

    def _flat(self) -> Attributes:
        made = self.without_metadata() if not self._later else Attributes(self._n)
        made._values, made._are_numbers, made._metadata = dict(self._values), dict(self._are_numbers), self._metadata
        return made

    def _texts(self) -> pa.LargeStringArray:
        return pa.array([""] * self._n, pa.large_string()) if self._metadata is None else self._metadata

    # The content of a file.

    def to_parts(self) -> list[Any]:
        self._merge()
        return [self._n, self._values, self._are_numbers, self._metadata]

    @classmethod
    def from_parts(cls, n: Any, values: Any, are_numbers: Any, metadata: Any, *, is_checked: bool) -> Attributes:
        made = cls(n)
        made._values, made._are_numbers, made._metadata = values, are_numbers, metadata
        if not is_checked:
            made._validate()
        return made

    def _validate(self) -> None:
        check_type(self._n, int, "the number of attributes")
        check_type(self._values, dict[str, NDArray[np.float64]], "the options of queries")
        check_type(self._are_numbers, dict[str, NDArray[np.bool_]], "the options of queries")
        check(self._values.keys() <= {*OPTIONS}, "queries have unknown options")
        flagged = self._values.keys() & {*IN_UNITS}
        check(self._are_numbers.keys() in (flagged, flagged - {"margin"}), "the options of queries are incomplete")
        for each in (*self._values.values(), *self._are_numbers.values()):
            check_shape(each, (self._n,), "the options of queries")
        for name, each in self._values.items():
            known = each[~np.isnan(each)]
            most = len(ONCE) - 1 if name == "once" else 1e17 if name in DURATIONS else np.finfo(np.float64).max
            check((known >= 0).all() and (known <= most).all(), f"the option {name} of a query is out of range")
        if self._metadata is not None:
            check(isinstance(self._metadata, pa.LargeStringArray), "the metadata of queries have the wrong type")
            check(len(self._metadata) == self._n, "the metadata of queries are incomplete")


def _is_one(given: Any) -> bool:
    """Whether a value is for all queries."""
    is_scalar = not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0
    return isinstance(given, (str, bytes)) or is_scalar


def _as_list(given: Any) -> Any:
    return given if isinstance(given, np.ndarray) else list(given.to_pylist() if hasattr(given, "to_pylist") else given)
