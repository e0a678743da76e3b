"""A section of a pipeline file: a table with a fixed set of keys."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from vedette.data.durations import read_duration
from vedette.errors import QueryError

Options = dict[str, str | bool | int | float]  # options of Spark's readers and writers


class Section(BaseModel):
    """Keys and values of a table in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def check_duration(value: str) -> str:
    """The value. Raises ValueError if it is not a duration."""
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
    """A duration in a form that Spark can read: it knows neither `5 min` nor `1.5 hours`."""
    return f"{read_duration(value, 'it', 'timestamp')} microseconds"


def spark_value(value: Any) -> str:
    """A value as a string for Spark's options and settings."""
    return str(value).lower() if isinstance(value, bool) else str(value)
