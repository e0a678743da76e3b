"""The limits of the service: what each counts, its default, and the status of a request that exceeds it.

Flags of `vedette serve`, the table `[serve]` of the settings file and the table in docs/serve.md are made from this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vedette.errors import FileError, PipelineError, nearest, shown

if TYPE_CHECKING:
    from vedette.settings import Settings

_MOST = 10**12
_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Limit:
    """A limit. Where 0 is allowed, it means that there is none."""

    default: Any
    of: str  # what it limits
    status: int
    unit: str = "NUMBER"
    least: int = 0
    most: int = _MOST
    of_token: str = ""  # the option of a token that precedes it
    is_setting: bool = False  # a limit on queries that settings have too; by default that of the settings

    @property
    def of_and_none(self) -> str:
        if self.is_setting:
            return f"{self.of}; 0: that of the settings"
        return f"{self.of}; 0: none" if self.least == 0 and self.unit != "SHARE" else self.of

    def check(self, name: str, value: Any) -> None:
        """Raise PipelineError unless a value is one that the limit can have."""
        if self.unit == "SHARE":
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not 0 < value <= 1:
                raise PipelineError(
                    f"must be a share above 0 and at most 1, such as 0.5; got {shown(value)}", option=name
                )
        elif type(value) is not int or not self.least <= value <= self.most:
            raise PipelineError(
                f"must be a whole number of {self.least:,} to {self.most:,}; got {shown(value)}", option=name
            )


LIMITS: dict[str, Limit] = {
    "max_body_bytes": Limit(64 * _MEBIBYTE, "bytes of the body of a request, or of a message", 413, "BYTES"),
    "max_rows": Limit(1_000_000, "rows of a request", 413, least=1),
    "rows_per_second": Limit(0, "rows per second of a token, monitored or matched", 429, of_token="rows_per_second"),
    "max_requests": Limit(1000, "requests at the same time", 429),
    "max_connections": Limit(10_000, "open connections", 429),
    "max_waiting_bytes": Limit(1024 * _MEBIBYTE, "bytes of the bodies of all unanswered requests", 429, "BYTES"),
    "max_streams": Limit(500, "streams of events, keys and rows at the same time", 429),
    "max_streams_per_token": Limit(0, "streams of one token at the same time", 429),
    "max_queries_per_token": Limit(0, "active queries of a token in each set", 429, of_token="max_queries"),
    "max_text_length": Limit(100_000, "characters of the text of a query", 400, is_setting=True),
    "max_terms": Limit(0, "comparisons, calls and arithmetic of a query", 400, is_setting=True),
    "max_list_values": Limit(0, "values in the IN lists of a query", 400, is_setting=True),
    "max_nesting": Limit(0, "nested levels of a query", 400, is_setting=True),
    "max_boxes": Limit(0, "boxes of a query in normal form", 400, is_setting=True),
    "max_polygon_vertices": Limit(0, "vertices of the polygons of a query", 400, is_setting=True),
    "max_residual_cost": Limit(
        10_000, "operations of the part of a query that no index answers", 400, is_setting=True
    ),
    "max_match_share": Limit(1.0, "share of the recent rows that a new query may match", 400, "SHARE"),
}  # fmt: skip


def read_limits(table: Mapping[str, Any]) -> dict[str, Any]:
    """The limits of the settings file, checked."""
    for name, value in table.items():
        if name not in LIMITS:
            known = ", ".join(LIMITS)
            raise FileError(f"[serve]: unknown limit {shown(name)}; limits are: {known}{nearest(name, LIMITS)}")
        try:
            LIMITS[name].check(name, value)
        except PipelineError as error:
            raise FileError(f"[serve]: {error.with_option(name)}") from None
    return dict(table)


def limits_of_queries(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings with the limits on queries that the service has. Raises PipelineError if they would be higher."""
    own = {name: given[name] for name, limit in LIMITS.items() if limit.is_setting and given[name]}
    for name, value in own.items():
        most = getattr(settings, name)
        if value > most and value != LIMITS[name].default:
            raise PipelineError(f"must be at most {most:,}, the setting {name}; got {value:,}", option=name)
    return settings.model_copy(update={name: min(value, getattr(settings, name)) for name, value in own.items()})


def document() -> str:
    """The table of the docs."""
    from vedette.settings import Settings

    defaults = Settings()
    lines = ["| option | default | limits | answer |", "| --- | --- | --- | --- |"]
    for name, limit in LIMITS.items():
        default = f"{limit.default:,}" if limit.default else "none"
        if limit.is_setting and not limit.default:
            default = f"{getattr(defaults, name):,}, the setting"
        elif limit.unit == "BYTES":
            default = f"{limit.default // _MEBIBYTE:,} MiB"
        elif limit.unit == "SHARE":
            default = f"{limit.default:g}: none is refused"
        of_token = f"; of one token: `--{limit.of_token.replace('_', '-')}`" if limit.of_token else ""
        lines.append(f"| `--{name.replace('_', '-')}` | {default} | {limit.of}{of_token} | {limit.status} |")
    return "\n".join(lines)
