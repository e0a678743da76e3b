"""Arrays and maps as texts and back, so that what keeps strings can keep them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from vedette.data.columns import Column, held_type, large_strings
from vedette.data.schema import Type, is_nested
from vedette.native.damage import DamageError

_NO_LIST = "[]"


def write_lists(column: Column) -> Column:
    """Each list as a JSON text. Equal lists have equal texts."""
    lists = column.values.to_pylist()
    texts = [_NO_LIST if held is None else json.dumps(held, ensure_ascii=False) for held in lists]
    return Column(large_strings(texts), column.valid)


def read_lists(column: Column, type_: Type) -> Column:
    """The lists that `write_lists` wrote. Raises DamageError for other texts."""
    try:
        lists = [json.loads(text) for text in column.values.to_pylist()]
        array = pa.array(lists, held_type(type_))
    except (ValueError, TypeError, pa.ArrowException):
        raise DamageError("an array in the state cannot be read") from None
    valid: Any = np.ones(len(lists), np.bool_) if column.valid is None else column.valid
    return Column(array, valid)


def save_column(column: Column) -> list[Any]:
    """The values and the mask of a column in a saved state: arrays as texts."""
    if isinstance(column.values, pa.LargeListArray):
        column = write_lists(column)
    return [column.values, column.valid]


def load_column(values: Any, valid: Any, type_: Type) -> Column:
    """The column of that type that was saved."""
    column = Column(values, valid)
    return read_lists(column, type_) if is_nested(type_) else column
