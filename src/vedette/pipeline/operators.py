"""The operators of pipeline files: match, border, window join, band join and moving join, with their options.

The keys are the options of the transforms in `vedette.spark`, with the same names and defaults. An option that a
transform has per stream takes one value for all streams or a table by stream: `time = "ts"`, or
`time = { left = "ts", right = "at" }`.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from vedette.errors import VedetteError
from vedette.pipeline.section import Duration, Section, Text

Length = Duration | int | float  # of time: a number if the time column is a number
ByStream = Text | dict[str, Text]
Carried = list[Text] | dict[str, list[Text]]
_CARRIED = "columns of the rows of a pair: a list for all streams, or one by stream"
_METADATA = "fields of the query's metadata that answers have"
Count = Annotated[int, Field(gt=0)]
OnBadRow = Literal["error", "drop", "dead-letter"]
_BAD_ROW = "what to do with rows that cannot be processed: stop, drop and count them, or keep them as dead letters"
Shards = Annotated[int, Field(gt=0, le=10_000)]


class OperatorSection(Section):
    """Base class of all operators."""

    has_streams: ClassVar[bool] = False  # whether rows come from [sources.NAME] and not from one [source]


class Match(OperatorSection):
    """Which queries each row matches."""

    kind: Literal["match"]
    output: Literal["pairs", "list"] = Field(
        "pairs", description="one row per matching query, or one row with a list of queries"
    )


class Border(OperatorSection):
    """Which queries a key enters and leaves."""

    kind: Literal["border"]
    key: Text = Field(description="the column that names the object")
    time: Text = Field(description="the column with the time")
    late: Literal["drop", "apply"] = Field("drop", description="what to do with rows older than the key's last")
    null_key: Literal["error", "drop"] = Field("error", description="what to do with rows without a key")
    expire_after: Length | None = Field(None, description="keys without rows for longer than this leave all queries")
    dwell: Length | None = Field(None, description="report an enter only after this time inside")
    margin: float | str | dict[str, float] | None = Field(
        None, description="how far outside a key must be before it leaves"
    )
    cross: bool = Field(False, description="report queries that a key crosses between two rows")
    columns: list[Text] | None = Field(None, description="columns of the row that causes an event")
    event_id: bool | None = Field(None, description="whether events have an id; by default with columns or metadata")
    cooldown: Length | None = Field(None, description="hold back events of a key and a query for this time")
    once: bool | Literal["query"] = Field(
        False, description="report only the first enter of a key into a query, or with 'query' of any key"
    )
    held_back: bool | None = Field(None, description="whether events say how many were held back before")
    metadata: list[Text] | None = Field(None, description="fields of the query's metadata that events have")
    on_bad_row: OnBadRow = Field("error", description=_BAD_ROW)
    shards: Shards | None = Field(None, description="parts of the state; a checkpoint keeps its number")


class WindowJoin(OperatorSection):
    """Which rows of several streams join within a window."""

    has_streams: ClassVar[bool] = True
    kind: Literal["window join"]
    time: ByStream | None = Field(None, description="the column with the time, or one by stream")
    id: ByStream = Field("id", description="the column with the row's id, or one by stream")
    late: Literal["drop", "apply"] = Field("drop", description="what to do with rows older than the stream's last")
    max_state_rows: Count | None = Field(None, description="stop if a shard would keep more rows than this")
    columns: Carried | None = Field(None, description=_CARRIED)
    event_id: bool | None = Field(None, description="whether pairs have an id; by default with columns or metadata")
    metadata: list[Text] | None = Field(None, description=_METADATA)
    layout: Literal["equality", "grid", "one"] | None = Field(None, description="which rows meet in which shard")
    on_bad_row: OnBadRow = Field("error", description=_BAD_ROW)
    shards: Shards | None = Field(None, description="parts of the state; a checkpoint keeps its number")


class BandJoin(OperatorSection):
    """Which values of two streams differ by an amount within a band."""

    has_streams: ClassVar[bool] = True
    kind: Literal["band join"]
    report: Literal["pairs", "queries"] = Field("pairs", description="the pairs, or only the ids of affected bands")
    id: ByStream = Field("id", description="the column with the value's id, or one by stream")
    value: ByStream = Field("value", description="the column with the value, or one by stream")
    op: ByStream | None = Field(None, description="the column that says insert or delete, or one by stream")
    known_id: Literal["error", "replace"] = Field("error", description="what to do if an id already has a value")
    unknown_id: Literal["log", "report", "error"] = Field("log", description="what to do if a deleted id has no value")
    max_state_rows: Count | None = Field(None, description="stop if a shard would keep more rows than this")
    columns: Carried | None = Field(None, description=_CARRIED)
    metadata: list[Text] | None = Field(None, description=_METADATA)
    on_bad_row: OnBadRow = Field("error", description=_BAD_ROW)
    shards: Shards | None = Field(None, description="parts of the state; a checkpoint keeps its number")


class MovingJoin(OperatorSection):
    """Which moving objects intersect which zones, and when."""

    kind: Literal["moving join"]
    max_update_interval: Length = Field(description="objects update at least this often: a number, or 60 seconds")
    id: Text = Field("id", description="the column with the object's id")
    time: Text = Field("time", description="the column with the time")
    removed: Text | None = Field(None, description="a boolean column: true if the object is removed")
    expire_overdue: bool = Field(False, description="whether objects that miss an update leave the result")
    late: Literal["apply", "drop", "error"] = Field(
        "apply", description="what to do with rows older than the last micro-batch"
    )
    columns: list[Text] | None = Field(None, description="columns of the rows of objects")
    metadata: list[Text] | None = Field(None, description="fields of the zones' metadata that answers have")
    on_bad_row: OnBadRow = Field("error", description=_BAD_ROW)
    shards: Shards | None = Field(None, description="parts of the state; a checkpoint keeps its number")


AnyOperator = Match | Border | WindowJoin | BandJoin | MovingJoin
Operator = Annotated[AnyOperator, Field(discriminator="kind")]
BY_STREAM = ("time", "id", "value", "op")


def at_key(error: VedetteError, section: str) -> VedetteError:
    """The same error. Its message has the key of the file: `left_time` of the transform is `time` in the file."""
    if error.option is None:
        return error.within(section)
    key = next((key for key in BY_STREAM if error.option.endswith(f"_{key}")), error.option)
    return error.with_option(f"{section}.{key}")


def options_of(operator: AnyOperator, streams: list[str]) -> dict[str, Any]:
    """The options of the transform. A value for all streams, or for one, becomes `left_time`, `right_time`."""
    given = {name: value for name, value in operator if name != "kind"}
    if isinstance(operator, MovingJoin):
        return {"a_id": given.pop("id"), **given}  # the objects are set a
    if not operator.has_streams:
        return given
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name not in BY_STREAM:
            options[name] = value
        elif value is not None:
            by_stream = value if isinstance(value, dict) else dict.fromkeys(streams, value)
            options |= {f"{stream}_{name}": column for stream, column in by_stream.items()}
    return options
