"""Inputs of the query commands: texts, ids, metadata and times, from options, files or standard input."""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from vedette.errors import FileError, QueryError
from vedette.files.json_text import read_json


def read_metadata(texts: list[str] | None) -> dict[str, Any] | None:
    """Metadata from `owner=me` or from a JSON object; values of pairs that are JSON are read as JSON."""
    if not texts:
        return None
    read: dict[str, Any] = {}
    for text in texts:
        if text.lstrip().startswith("{"):
            read |= _read_object(text)
            continue
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise QueryError(f"must be name=value, or a JSON object; got {text!r}", option="metadata")
        read[name] = read_value(value)
    return read


def read_value(text: str) -> Any:
    """A value of metadata: parsed as JSON if possible, else the text itself."""
    try:
        return read_json(text, parse_constant=_refuse_constant, parse_float=_read_float)
    except ValueError:
        return text


def read_time(text: str | None) -> datetime | str | None:
    """A time, in UTC if it has no zone; or `never`."""
    return text if text is None or text == "never" else read_moment(text, "expires_at")


def read_moment(text: str, option: str) -> datetime:
    """A time, in UTC if it has no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise QueryError(f"must be a time such as 2026-03-02T14:00:00Z; got {text!r}", option=option) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_text(text: str | None, file: Path | None) -> str | None:
    """The text of a query: an argument, or read from standard input or a file."""
    if text is not None and file is not None:
        raise QueryError("got a text and --file; give one of them")
    if file is not None:
        return _read_file(file).strip()
    return _read_input().strip() if text == "-" else text


def read_ids(ids: list[str], file: Path | None) -> list[str]:
    """Ids from arguments, or from a file or standard input with one id per line; empty lines are ignored."""
    read = [text for text in ids if text != "-"]
    lines = _read_input().split("\n") if "-" in ids else []
    if file is not None:
        lines += _read_file(file).split("\n")
    read += [line for line in (each.removesuffix("\r") for each in lines) if line]
    if not read:
        raise QueryError("no id is given; give ids, or read them with --file, or with - from standard input")
    return read


def _read_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read standard input: {error}") from None


def _read_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse_constant(text)
    return number


def _read_object(text: str) -> dict[str, Any]:
    try:
        read = read_json(text)
    except ValueError as error:
        raise QueryError(f"is not valid JSON: {error}", option="metadata") from None
    return dict(read)
