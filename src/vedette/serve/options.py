"""The options of the service, each with its default: the address, the state, and the limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ServeOptions:
    """How a service runs. A limit of 0 means that there is none."""

    state: Path  # the directory of monitors
    host: str = "127.0.0.1"
    port: int = 8080
    sync: bool = False  # accepted rows are on the disk before the answer
    keep_events: int = 100_000  # of each set, for clients that read on later
    log_bytes: int = 32 << 20  # of accepted rows, after which a snapshot is written
    poll_seconds: float = 0.5  # between two looks at the registry
    tick_seconds: float = 1.0  # between two advances of monitors with clock = "wall"
    allow_addresses: tuple[str, ...] = ()  # networks that deliveries may send to, besides public addresses
    max_body_bytes: int = 64 << 20
    max_rows: int = 1_000_000  # of a request
    rows_per_second: int = 0  # of a token, or of all requests without one
    max_requests: int = 1000  # at the same time
    max_waiting_bytes: int = 1 << 30  # of the bodies of requests that are not answered yet, together
    max_streams: int = 500  # clients that follow events
    max_text_length: int = 100_000  # of a query that is sent to the service
    tiles: str = ""  # of the console's map: the address of a tile server; without it, an outline of the land

    @property
    def is_local(self) -> bool:
        """Whether only processes of this host can connect."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")
