"""The limit on answers that are returned as a whole, the setting max_answer_bytes, and the error that names it."""

from __future__ import annotations

from vedette.errors import AnswerError, count
from vedette.settings import settings


def max_answer_bytes() -> int:
    return settings().max_answer_bytes


def check_answer(n: int, n_bytes: int, noun: str, advice: str) -> None:
    """Raise AnswerError if an answer of `n` pairs or events exceeds the limit."""
    if n_bytes > settings().max_answer_bytes:
        raise too_large(f"has {count(n, noun)} in {n_bytes:,} bytes", advice)


def too_large(what: str, advice: str, limit: int | None = None) -> AnswerError:
    """The error for an answer that `what` describes: `too_large("has more than 5 pairs", "pass fewer rows")`."""
    limit = settings().max_answer_bytes if limit is None else limit
    return AnswerError(f"the answer {what}; the limit is {limit:,} bytes (setting max_answer_bytes): {advice}")
