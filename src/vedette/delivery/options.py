"""The options of a webhook, validated. They are the same in Python, in pipeline files and on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vedette.data.durations import read_duration
from vedette.delivery.addresses import Allowed
from vedette.delivery.signing import Secret
from vedette.delivery.urls import find_fault
from vedette.errors import PipelineError, shown

MAX_EVENTS, ATTEMPTS, CONNECTIONS = 100, 8, 16
TIMEOUT, TIME_LIMIT = "10 seconds", "2 minutes"


@dataclass(frozen=True)
class WebhookOptions:
    """How requests are sent. `url` is None if each event has its own."""

    url: str | None
    secret: Secret | None
    allowed: Allowed
    max_events: int
    attempts: int
    connections: int
    timeout: float  # seconds for one try
    time_limit: float  # seconds for all requests of a micro-batch
    has_secret_per_group: bool = False

    @classmethod
    def read(
        cls,
        url: str | None,
        *,
        secret_env: str | None = None,
        secret_file: str | Path | None = None,
        allow_addresses: Sequence[str] = (),
        max_events: int = MAX_EVENTS,
        attempts: int = ATTEMPTS,
        connections: int = CONNECTIONS,
        timeout: str = TIMEOUT,
        time_limit: str = TIME_LIMIT,
        has_secret_per_group: bool = False,
    ) -> WebhookOptions:
        """The options. Raises PipelineError with the option if one is invalid."""
        fault = find_fault(url) if isinstance(url, str) else f"{shown(url)} is not a text"
        if url is not None and fault is not None:
            raise PipelineError(f"is invalid: {fault}", option="url")
        if secret_env is not None and secret_file is not None:
            raise PipelineError("and secret_file are both given; give one of them", option="secret_env")
        is_signed = secret_env is not None or secret_file is not None
        return cls(
            url,
            Secret.find(secret_env, secret_file) if is_signed else None,
            Allowed.read(allow_addresses),
            _check_count("max_events", max_events, 10_000),
            _check_count("attempts", attempts, 100),
            _check_count("connections", connections, 1_000),
            _read_seconds("timeout", timeout),
            _read_seconds("time_limit", time_limit),
            has_secret_per_group,
        )


def _check_count(option: str, value: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise PipelineError(f"must be a number from 1 to {most:,}; got {shown(value)}", option=option)
    return value


def _read_seconds(option: str, value: str) -> float:
    return read_duration(value, option, "timestamp") / 1e6
