"""The bodies of requests and answers, as the OpenAPI document describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from vedette.delivery.options import ATTEMPTS, MAX_EVENTS, TIME_LIMIT, TIMEOUT

Id = Annotated[str, Field(max_length=1000)] | Annotated[int, Field(ge=-(2**63), lt=2**63)]
Version = Annotated[int, Field(ge=0, lt=2**63)]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
Duration = Annotated[str, Field(max_length=100)] | float
Once = bool | Literal["query"]
Clock = Literal["event", "wall"]
Time = (
    Annotated[str, Field(strict=True, max_length=100)]
    | Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
)
Metadata = Annotated[list[Name] | None, Field(description="fields of the query's metadata that events have")]
Count = Annotated[int, Field(ge=1, lt=2**63)]
SampleRows = Annotated[list[dict[str, Any]], Field(min_length=1, max_length=10_000)]
Share = Annotated[float, Field(gt=0, le=1)]
ByStream = Name | dict[str, Name]
BySide = list[Name] | dict[str, list[Name]]


class Body(BaseModel):
    """The body of a request: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class SetRecord(BaseModel):
    """A set."""

    name: str
    kind: str
    ids: str | None = Field(description="the type of the queries' ids: string or integer; null until one is added")
    queries: int = Field(description="active queries")
    parked: int = Field(description="queries that are invalid since the schema changed")
    version: int
    schema_: str | dict[str, str] | None = Field(None, alias="schema")
    time_zone: str
    created_at: datetime
    max_match_share: float | None


class NewSet(Body):
    name: Name
    kind: Literal["match", "border", "window join", "band join", "moving join"] = "match"
    schema_: str | dict[str, str] | None = Field(
        None, alias="schema", description="symbol string, price double; of window joins, one by stream"
    )
    time_zone: str = "UTC"
    ids: Literal["string", "integer"] | None = None
    windows: Literal["time", "rows", "any"] | None = None
    dimensions: Literal[2, 3] | None = None
    sample: SampleRows | None = Field(None, description="rows that new queries are measured on; needs max_match_share")
    max_match_share: Share | None = Field(None, description="the share of the sample that a new query may match")


class AlteredSet(Body):
    schema_: str | dict[str, str] | None = Field(None, alias="schema")
    time_zone: str | None = None
    force: bool = Field(False, description="park queries that are invalid under the new schema")
    sample: SampleRows | None = Field(None, description="rows that new queries are measured on; not with a schema")
    max_match_share: Share | Literal["none"] | None = Field(None, description="none: clear it and the sample")


class QueryBody(Body):
    """A query. Which fields it has depends on the kind of its set."""

    where: str | None = Field(None, description="the condition, in Spark SQL")
    within: str | dict[str, str] | None = None
    rows: int | dict[str, int] | None = None
    low: float | None = None
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None
    y_low: float | None = None
    y_high: float | None = None
    z_low: float | None = None
    z_high: float | None = None
    metadata: dict[str, Any] | None = None
    expires_at: datetime | Literal["never"] | None = None
    ttl: str | None = Field(None, description="expires after this time: 5 minutes")
    dwell: Duration | None = None
    margin: float | str | dict[str, float] | None = None
    expire_after: Duration | None = None
    cooldown: Duration | None = None
    once: Once | None = None

    def to_arguments(self) -> dict[str, Any]:
        """As arguments of `add` and `replace`."""
        given = {name: value for name, value in self if name != "id" and value is not None}
        if "where" in given:
            given["text"] = given.pop("where")
        return given


class NewQuery(QueryBody):
    id: Id


class QueryRecord(BaseModel):
    """A query, or one of its revisions."""

    model_config = ConfigDict(extra="allow")
    id: str | int
    state: str = Field(description="active, or why it ended: removed, replaced, expired, parked")
    metadata: dict[str, Any]
    added: int = Field(description="the version that added it")
    removed: int | None = Field(description="the version that ended it")
    created_at: datetime
    ended_at: datetime | None
    expires_at: datetime | None
    match_share: float = Field(0.0, description="of the recent rows, as last measured; absent up to a tenth")


class QueryPage(BaseModel):
    queries: list[QueryRecord]
    next: str | int | None = Field(description="send it as `after` for the next page; null on the last page")
    version: int


class Measured(BaseModel):
    """How much of the set's recent rows, or of its sample, a query matches. Absent if there are no such rows."""

    match_share: float = Field(0.0, description="from 0 to 1")
    warnings: list[str] = Field([], description="if it matches more than a tenth")


class Changed(BaseModel):
    version: int = Field(description="the version of the set that has the change")


class Written(Measured, Changed):
    """A query was added or replaced."""


class Line(Measured):
    line: int
    id: str | int | None
    did: Literal["added", "replaced", "removed", "nothing"]
    error: dict[str, Any] | None = None


class BulkReport(BaseModel):
    version: int
    added: int
    replaced: int
    removed: int
    invalid: int
    lines: list[Line]


class DiffLine(BaseModel):
    id: str | int
    change: Literal["added", "removed", "changed"]
    before: QueryRecord | None
    after: QueryRecord | None


class Diff(BaseModel):
    before: int
    after: int
    queries: list[DiffLine]
    more: int = Field(description="queries that differ and are not listed")


class ToVersion(Body):
    version: Version


class CheckBody(Body):
    where: str
    rows: list[dict[str, Any]] | None = Field(None, max_length=10_000, description="a sample of rows")


class Checked(BaseModel):
    valid: bool
    warnings: list[str] = []
    error: dict[str, Any] | None = Field(None, description="as in answers with an error: message, position, end")


class BroadQuery(BaseModel):
    id: str | int
    match_share: float


class Explanation(BaseModel):
    version: int
    explanation: str
    broad: list[BroadQuery] = Field(
        description="queries that match more than a tenth of the recent rows, largest first"
    )


class WhyBody(Body):
    query: Id
    row: dict[str, Any] | None = None
    key: Id | None = Field(None, description="a key of the monitor: explains its last row, and the move to `row`")
    now: datetime | None = Field(None, description="the moment that now() means; by default the clock")


class MonitorBody(Body):
    """The options of a monitor. Which ones there are depends on the kind of the set."""


class BorderMonitorBody(MonitorBody):
    """Border monitoring: the options of `QuerySet.border`."""

    key: Name
    time: Name
    late: Literal["drop", "apply"] = "drop"
    null_key: Literal["error", "drop"] = "error"
    expire_after: Duration | None = None
    dwell: Duration | None = None
    margin: float | str | dict[str, float] | None = None
    cross: bool = False
    columns: list[Name] | None = None
    metadata: Metadata = None
    cooldown: Duration | None = None
    once: Once = False
    clock: Clock = Field("event", description="wall: time passes by the clock of the service, also without rows")
    delay: Duration | None = Field(None, description="with clock wall: how much later rows may come; 1 second")


class WindowMonitorBody(MonitorBody):
    """A window join: the options of `JoinQuerySet.window`."""

    time: ByStream | None = Field(None, description="the field with the time, or one by stream")
    id: ByStream | None = Field("id", description="the field with the row's id, or one by stream; null: its number")
    late: Literal["drop", "apply"] = "drop"
    max_state_rows: Count | None = None
    columns: BySide | None = None
    metadata: Metadata = None
    clock: Clock = Field("event", description="wall: time passes by the clock of the service, also without rows")
    delay: Duration | None = Field(None, description="with clock wall: how much later rows may come; 1 second")


class BandMonitorBody(MonitorBody):
    """A band join: the options of `BandQuerySet.monitor`."""

    report: Literal["pairs", "queries"] = "pairs"
    known_id: Literal["error", "replace"] = "error"
    unknown_id: Literal["log", "report", "error"] = "log"
    max_state_rows: Count | None = None
    columns: BySide | None = None
    metadata: Metadata = None


class MovingMonitorBody(MonitorBody):
    """A moving join with zones: the options of `ZoneSet.monitor`."""

    max_update_interval: Duration
    expire_overdue: bool = False
    late: Literal["apply", "drop", "error"] = "apply"
    columns: list[Name] | None = None
    metadata: Metadata = None
    clock: Clock = Field("event", description="wall: time passes by the clock of the service, also without rows")
    delay: Duration | None = Field(None, description="with clock wall: how much later rows may come; 1 second")


class TimePassed(Body):
    time: Time = Field(description="a time that later rows are not before, as the rows have it")


class Passed(BaseModel):
    rows: int
    version: int = Field(description="of the queries")
    sequence: int = Field(description="of the last event of the set so far")
    events: list[dict[str, Any]] = Field(description="the events that passing time has caused")


class DeliveryBody(Body):
    """Where the events of a set are sent, and which."""

    url: Annotated[str, Field(max_length=2000)]
    events: list[Name] | None = Field(None, description="types of events, such as enter; by default all")
    query: str | None = Field(None, description="only events of this query")
    key: str | None = Field(None, description="only events of this key")
    owner: str | None = Field(None, description="only events of queries of this owner")
    group_by: Name | None = Field(None, description="a field of events, such as owner: a request has one value of it")
    secret_env: Name | None = Field(
        None, description="the environment variable of the service with the secret of signatures: VEDETTE_WEBHOOK_..."
    )
    max_events: int = Field(MAX_EVENTS, ge=1, le=10_000, description="events per request")
    attempts: int = Field(ATTEMPTS, ge=1, le=100, description="tries of a request")
    timeout: Annotated[str, Field(max_length=100)] = Field(TIMEOUT, description="for one try")
    time_limit: Annotated[str, Field(max_length=100)] = Field(TIME_LIMIT, description="for the requests of one look")


class DeliveryStatus(BaseModel):
    sent: int = Field(description="events that were delivered since the service has started")
    dead: int = Field(description="events that became dead letters since then")
    missed: int = Field(description="events that were no longer kept when it was their turn")
    lag: int = Field(description="events of the set that are not settled yet")
    failing_since: datetime | None = Field(description="null after a request was delivered")
    last_error: str | None


class DeliveryRecord(DeliveryBody):
    name: str
    status: DeliveryStatus


class LetterRecord(BaseModel):
    id: str
    kind: str
    source: str
    body: str
    reason: str
    failed_at: datetime
    host: str | None
    group: str | None
    status: int | None
    attempts: int


class LetterChoice(Body):
    """Which dead letters: all that fit everything that is given."""

    source: str | None = None
    ids: list[Annotated[str, Field(max_length=1000)]] | None = Field(None, max_length=10_000)


class Redelivered(BaseModel):
    delivered: int
    failed: int


class Dropped(BaseModel):
    dropped: int


class NewToken(Body):
    name: Name
    role: Literal["read", "write", "admin"]
    sets: list[Name] | None = Field(None, description="confine it to these sets")
    owner: Name | None = Field(None, description="confine it to queries of this owner")
    max_queries: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(
        None, description="active, in each set; 0: it can add none"
    )
    rows_per_second: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(
        None, description="that it may send; 0: no limit"
    )
    ttl: str | None = Field(None, description="expires after this time: 30 days")


class TokenRecord(BaseModel):
    id: str
    name: str
    role: str
    sets: list[str] | None
    owner: str | None
    max_queries: int | None
    rows_per_second: int | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class SessionRecord(BaseModel):
    """Who the caller is."""

    token: str | None = Field(description="the id of the token; null if the service has no tokens")
    name: str | None = Field(description="as histories name the author of a change")
    role: str
    sets: list[str] | None = Field(description="the sets that the token is confined to; null: all")
    owner: str | None = Field(description="the owner that the token is confined to; null: all")


class SetState(BaseModel):
    """A set, and what the service has done with it since its start."""

    name: str
    kind: str
    queries: int
    parked: int
    version: int
    monitored: bool
    sequence: int | None = Field(description="of the last event; null until the set is used")
    monitor_error: str | None
    broad: int | None = Field(None, description="queries that match more than a tenth of the recent rows")
    waiting: int | None = Field(None, description="requests that wait for the thread of the set")
    keys: int | None = None
    late: int | None = None
    rows: int | None = Field(None, description="rows that were accepted or matched")
    matches: int | None = None
    events: int | None = None


class Status(BaseModel):
    version: str
    ready: bool
    registry_error: str | None = Field(description="why the registry's database does not answer")
    streams: int = Field(description="clients that follow events")
    tiles: str | None = Field(description="the address of the map's tile server")
    sets: list[SetState]


class FunctionRecord(BaseModel):
    name: str
    aliases: list[str]
    call: str = Field(description="as a query calls it")
    section: str
    gives: str = Field(description="what it gives, in Markdown")


class CreatedToken(TokenRecord):
    token: str = Field(description="the token itself; it is not shown again")


class SinkProgress(BaseModel):
    """The progress of a sink of a pipeline. Totals are since its start."""

    sink: str
    batch: int | None = Field(description="the last micro-batch")
    rows_in_total: int
    matches_out_total: int
    malformed_total: int
    rows_per_second: float | None = Field(description="over the last 30 seconds")
    batch_seconds: float | None = Field(description="of the last micro-batch")
    lag_rows: int | None = Field(description="rows in the source that are not read yet, if it counts them")
    lag_seconds: float | None = Field(description="age of the latest row, if there is a watermark")
    version: int | None = Field(description="of the queries, in the last micro-batch")
    dead_letters_total: int


class PipelineRecord(BaseModel):
    """A process that runs a pipeline file."""

    name: str
    set_: str = Field(alias="set")
    operator: str
    state: Literal["starting", "running", "stopping", "stopped", "ended", "failed", "lost"]
    host: str
    process: int
    vedette: str
    queries: int | None = Field(description="active ones")
    error: str | None = Field(description="the last one")
    started_at: datetime
    seen_at: datetime = Field(description="when it last wrote its status")
    ended_at: datetime | None
    sinks: list[SinkProgress]


class PipelineEvent(BaseModel):
    sink: str
    batch: int
    event: dict[str, Any]


class KeyRecord(BaseModel):
    key: str | int
    time: Any = Field(description="of the last row")
    row: dict[str, Any] = Field(description="the fields of the last row that queries use")


class KeyPage(BaseModel):
    keys: list[KeyRecord]
    next: int | None = Field(description="send it as `after` for the next page; null on the last page")
    total: int = Field(description="keys of the monitor")


class RecentValues(BaseModel):
    key: str
    field: str
    times: list[Any]
    values: list[Any]
    ranges: list[list[float | None]] | None = Field(description="of the query: [low, high], null for no bound")


class MovingZone(BaseModel):
    """A rectangle, or a box if there is a z."""

    id: str | int
    x_low: float
    x_high: float
    y_low: float
    y_high: float
    z_low: float | None = None
    z_high: float | None = None


class MovingObject(MovingZone):
    """An object with its last motion: the sides at `time`, and their speeds."""

    time: float = Field(description="of the motion")
    until: float | None = Field(description="the deadline, up to which pairs are known; null: none")
    vx_low: float
    vx_high: float
    vy_low: float
    vy_high: float
    vz_low: float | None = None
    vz_high: float | None = None


class MovingPair(BaseModel):
    """An object and a zone, and from when until when they intersect."""

    a: str | int = Field(description="the object")
    b: str | int = Field(description="the zone")
    start: float
    end: float
    ends: bool = Field(description="false: `end` is only the deadline of the object")


class ObjectPage(BaseModel):
    time: float | None = Field(description="that the monitor has reached; null before the first row")
    interval: float = Field(description="max_update_interval, in the unit of times")
    objects: list[MovingObject]
    pairs: list[MovingPair] = Field(description="of these objects, by start")
    zones: list[MovingZone] = Field(description="of these pairs")
    more_pairs: int = Field(description="pairs of these objects that are not listed, because they start later")
    next: int | None = Field(description="send it as `after` for the next page; null on the last page")
    total: int = Field(description="objects of the monitor")


class ZoneCollection(BaseModel):
    """GeoJSON."""

    type: Literal["FeatureCollection"]
    features: list[dict[str, Any]]
    more: int = Field(description="zones of the area that are not listed")
    version: int
