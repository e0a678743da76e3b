"""The options of the service, each with its default: the address, the state, and the limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from vedette.delivery.addresses import Allowed
from vedette.serve.limits import LIMITS, limits_of_queries
from vedette.settings import Settings, settings


@dataclass(frozen=True)
class ServeOptions:
    """How a service runs. `limits.py` describes the limits; 0 means that there is none.

    Raises PipelineError if a limit is not one that it can have.
    """

    state: Path  # the directory of monitors
    host: str = "127.0.0.1"
    port: int = 8080
    sync: bool = False  # accepted rows are on the disk before the answer
    keep_events: int = 100_000  # of each set, for clients that read on later
    log_bytes: int = 32 << 20  # of accepted rows, after which a snapshot is written
    poll_seconds: float = 0.5  # between two looks at the registry
    tick_seconds: float = 1.0  # between two advances of monitors with clock = "wall"
    allow_addresses: tuple[str, ...] = ()  # networks that deliveries may send to, besides public addresses
    max_body_bytes: int = LIMITS["max_body_bytes"].default
    max_rows: int = LIMITS["max_rows"].default
    rows_per_second: int = LIMITS["rows_per_second"].default  # also of all requests without a token
    max_requests: int = LIMITS["max_requests"].default
    max_connections: int = LIMITS["max_connections"].default
    max_waiting_bytes: int = LIMITS["max_waiting_bytes"].default
    max_streams: int = LIMITS["max_streams"].default
    max_streams_per_token: int = LIMITS["max_streams_per_token"].default
    max_queries_per_token: int = LIMITS["max_queries_per_token"].default
    max_text_length: int = LIMITS["max_text_length"].default
    max_terms: int = LIMITS["max_terms"].default
    max_list_values: int = LIMITS["max_list_values"].default
    max_nesting: int = LIMITS["max_nesting"].default
    max_boxes: int = LIMITS["max_boxes"].default
    max_polygon_vertices: int = LIMITS["max_polygon_vertices"].default
    max_residual_cost: int = LIMITS["max_residual_cost"].default
    max_match_share: float = LIMITS["max_match_share"].default
    tiles: str = ""  # of the console's map: the address of a tile server; without it, an outline of the land

    def __post_init__(self) -> None:
        for name, limit in LIMITS.items():
            limit.check(name, getattr(self, name))
        Allowed.read(self.allow_addresses)
        _ = self.limits_of_queries

    @cached_property
    def limits_of_queries(self) -> Settings:
        """The settings of this process, with the limits of the service on queries."""
        return limits_of_queries(settings(), asdict(self))

    @property
    def is_local(self) -> bool:
        """Whether only processes of this host can connect."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")
