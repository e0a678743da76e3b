"""A part of a pipeline's file: a table of keys, each with a meaning, and no others."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from vedette.data.durations import read_duration
from vedette.errors import QueryError

Options = dict[str, str | bool | int | float]  # of Spark's readers and writers


class Section(BaseModel):
    """Keys and values of a table in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def check_duration(value: str) -> str:
    """The value, if it is a duration; raises ValueError where it is none."""
    try:
        read_duration(value, "it", "timestamp")
    except QueryError as error:
        raise ValueError(error.reason) from None
    return value


def _check_filled(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty")
    return value


Duration = Annotated[str, AfterValidator(check_duration)]
Text = Annotated[str, AfterValidator(_check_filled)]


def spark_duration(value: str) -> str:
    """A duration in words that Spark's own reader knows: it has no `5 min` and no `1.5 hours`."""
    return f"{read_duration(value, 'it', 'timestamp')} microseconds"


def spark_value(value: Any) -> str:
    """A value as Spark's options and settings have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
