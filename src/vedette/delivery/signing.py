"""Signatures of requests, as Standard Webhooks defines them: HMAC-SHA256 over the id, the time and the body.

Receivers can verify them with the libraries of that specification (https://www.standardwebhooks.com).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vedette.errors import PipelineError, nearest, shown

_PREFIX = "whsec_"  # of a secret in base64
_SHORTEST = 16  # bytes


@dataclass(frozen=True, repr=False)
class Secret:
    """The key of signatures. Its text is never shown."""

    key: bytes

    def __repr__(self) -> str:
        return "Secret(...)"

    @classmethod
    def find(cls, variable: str | None, file: str | Path | None, environment: Mapping[str, str] = os.environ) -> Secret:
        """The secret in an environment variable, or in a file."""
        if variable is not None:
            if not environment.get(variable):
                raise PipelineError(
                    f"names {shown(variable)}, but the environment has no such variable, or it is empty"
                    f"{nearest(str(variable), environment)}",
                    option="secret_env",
                )
            return cls._read(environment[variable], "secret_env")
        try:
            return cls._read(Path(str(file)).read_text(encoding="utf-8").strip(), "secret_file")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text in UTF-8"
            raise PipelineError(f"is {shown(str(file))}, which cannot be read: {why}", option="secret_file") from None

    @classmethod
    def _read(cls, text: str, option: str) -> Secret:
        key = text.encode()
        if text.startswith(_PREFIX):
            try:
                key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
            except (binascii.Error, ValueError):
                raise PipelineError(
                    f"has a secret that begins with {_PREFIX} but is not base64", option=option
                ) from None
        if len(key) < _SHORTEST:
            raise PipelineError(
                f"has a secret of {len(key)} bytes; use at least {_SHORTEST}: openssl rand -hex 32", option=option
            )
        return cls(key)

    def of_group(self, group: str) -> Secret:
        """The secret of one group, so that a receiver that knows it cannot sign for another group."""
        return Secret(hmac.digest(self.key, group.encode(), hashlib.sha256))

    def __str__(self) -> str:
        return repr(self)

    def text(self) -> str:
        """The secret as receivers need it."""
        return _PREFIX + base64.b64encode(self.key).decode()

    def sign(self, request_id: str, seconds: int, body: bytes) -> str:
        """The signature of a request that is sent at this time (seconds since 1970)."""
        signed = f"{request_id}.{seconds}.".encode() + body
        return "v1," + base64.b64encode(hmac.digest(self.key, signed, hashlib.sha256)).decode()


def headers(secret: Secret | None, request_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """The headers that identify a request, and sign it if there is a secret."""
    given = {"webhook-id": request_id, "webhook-timestamp": str(seconds)}
    return given if secret is None else given | {"webhook-signature": secret.sign(request_id, seconds, body)}
