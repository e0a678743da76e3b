"""Rows of sets without a schema, from JSON: ids, numbers, and whatever columns answers carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from vedette.data.schema import Schema
from vedette.errors import RowError, shown
from vedette.serve.bodies import RowsOf

_NUMBER: set[type] = {float, int}
_TEXT: set[type] = {str}
_TRUTH: set[type] = {bool}


@dataclass(frozen=True)
class PlainRows:
    """How such rows are read. A column has the values of its rows: texts, truth values or numbers, which are doubles.

    Ids are texts or whole numbers.
    """

    numbers: Sequence[str]  # columns that must be numbers
    max_rows: int
    missing: Mapping[str, Any]  # the values of columns that only some rows have; else null

    is_exact = False

    def read(self, form: int, body: bytes) -> pa.Table | list[Any] | dict[str, Any]:
        """A table, a list of records as JSON has them, or one record if the body is one JSON object."""
        return RowsOf(_NO_FIELDS, "UTC", self.max_rows).read(form, body)

    def load(self, text: bytes) -> Any:
        return RowsOf(_NO_FIELDS, "UTC", self.max_rows).load(text)

    def check(self, read: Any) -> Any:
        return RowsOf(_NO_FIELDS, "UTC", self.max_rows).check(read)

    def to_table(self, read: Any) -> pa.Table:
        if isinstance(read, pa.Table):
            return read
        records = [read] if isinstance(read, dict) else read
        names = list(dict.fromkeys(name for record in records for name in record)) if records else ["id"]
        if len(names) > _MOST_COLUMNS:
            raise RowError(f"the rows have {len(names):,} fields; at most {_MOST_COLUMNS:,} fit")
        return pa.table({name: self._to_array(name, records) for name in names})

    def _to_array(self, name: str, records: Sequence[Mapping[str, Any]]) -> pa.Array:
        lower = name.lower()
        missing = self.missing.get(lower)
        values = [record.get(name, missing) for record in records]
        types = set(map(type, values)) - {type(None)}
        for allowed, type_ in self._types_of(lower):
            if types <= allowed:
                try:
                    return pa.array(values, type_)
                except (pa.ArrowException, OverflowError, ValueError, TypeError):
                    break
        row = next((place for place, value in enumerate(values) if not self._fits(lower, value)), 0)
        raise RowError(f"row {row}: field {name!r} {self._wanted(lower)}; got {shown(values[row])}", field=name)

    def _types_of(self, lower: str) -> list[tuple[set[type], pa.DataType]]:
        if lower == "id":
            return [({int}, pa.int64()), (_TEXT, pa.string())]
        if lower in self.numbers:
            return [(_NUMBER, pa.float64())]
        return [(_NUMBER, pa.float64()), (_TEXT, pa.string()), (_TRUTH, pa.bool_())]

    def _fits(self, lower: str, value: Any) -> bool:
        if value is None:
            return True
        for allowed, type_ in self._types_of(lower):
            if type(value) in allowed:
                try:
                    pa.array([value], type_)
                    return True
                except (pa.ArrowException, OverflowError, ValueError, TypeError):
                    return False
        return False

    def _wanted(self, lower: str) -> str:
        if lower == "id":
            return "must be a text or a whole number of 64 bits, in all rows the same"
        return "must be a number" if lower in self.numbers else "must be a text, a number or true or false in all rows"


_NO_FIELDS = Schema.parse("id string")  # its types are not used
_MOST_COLUMNS = 1000
