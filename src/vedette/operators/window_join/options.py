"""The options of a window join, validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vedette.errors import QueryError, nearest
from vedette.operators.carried_rows import check_columns
from vedette.operators.side_columns import SideColumns
from vedette.operators.stable_ids import EVENT_ID


@dataclass(frozen=True)
class JoinOptions:
    """The options of `JoinQuerySet.window`; columns by stream, in the order of the streams."""

    times: tuple[str | None, ...]
    ids: tuple[str | None, ...]
    late: str
    max_state_rows: int | None
    columns: SideColumns
    metadata: tuple[str, ...]
    event_id: bool | None

    @classmethod
    def read(
        cls,
        streams: Sequence[str],
        roles: Mapping[str, Any],
        *,
        late: str = "drop",
        max_state_rows: int | None = None,
        columns: Any = None,
        metadata: Any = None,
        event_id: Any = None,
    ) -> JoinOptions:
        """The options of a caller: the roles are `left_time`, `left_id` and so on for every stream."""
        known = [f"{stream}_{role}" for stream in streams for role in ("time", "id")]
        for name, value in roles.items():
            if name not in known:
                raise QueryError(
                    f"unknown option {name!r} of window; the options are: {', '.join(known)}{nearest(name, known)}"
                )
            if value is not None and (not isinstance(value, str) or not value):
                raise QueryError(f"must be the name of a column of the rows; got {value!r}", option=name)
        if late not in ("drop", "apply"):
            raise QueryError(f"must be one of: 'drop', 'apply'; got {late!r}", option="late")
        is_count = isinstance(max_state_rows, int) and not isinstance(max_state_rows, bool) and max_state_rows > 0
        if max_state_rows is not None and not is_count:
            raise QueryError(
                f"must be a whole number above 0, or None; got {max_state_rows!r}", option="max_state_rows"
            )
        taken = ("query", *streams, EVENT_ID, "version")
        carried = SideColumns.read(columns, streams, taken)
        fields = check_columns(metadata, (*taken, *carried.names), "metadata")
        if event_id not in (None, True, False):
            raise QueryError(f"must be True or False; got {event_id!r}", option="event_id")
        times = tuple(roles.get(f"{stream}_time") for stream in streams)
        named = [stream for stream, time in zip(streams, times, strict=True) if time is not None]
        if named and len(named) < len(streams):
            missing = next(stream for stream in streams if stream not in named)
            raise QueryError(
                f"is missing: the {named[0]} stream has a time column; give one for each stream, or for none",
                option=f"{missing}_time",
            )
        ids = tuple(roles.get(f"{stream}_id") for stream in streams)
        return cls(times, ids, late, max_state_rows, carried, fields, event_id)

    @property
    def has_event_ids(self) -> bool:
        """Whether pairs have ids: by default, if they also have columns of rows, or metadata."""
        return bool(self.columns or self.metadata) if self.event_id is None else self.event_id

    @property
    def has_times(self) -> bool:
        return self.times[0] is not None
