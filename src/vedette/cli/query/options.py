"""Options that the query commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from vedette.cli.query.inputs import read_metadata, read_text, read_time
from vedette.errors import QueryError

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The query's id", show_default=False)]
ExpiresOption = Annotated[
    str | None,
    typer.Option(
        "--expires-at",
        metavar="TIME",
        help="When the query expires, such as: 2026-03-02T14:00:00Z; UTC if it has no zone",
        show_default="never",
    ),
]
TtlOption = Annotated[
    str | None, typer.Option("--ttl", metavar="DURATION", help="Or how long it is active, such as: 5 minutes")
]
ExpectOption = Annotated[
    int | None,
    typer.Option("--expect-version", metavar="VERSION", help="Change nothing unless the set is at this version"),
]


def _side(end: str, axis: str) -> Any:
    where = "in three dimensions, " if axis == "z" else ""
    help = f"For zones of moving joins: {where}the {end} side along {axis}"
    return typer.Option(f"--{axis}-{end}", metavar="NUMBER", help=help)


def _option(name: str, words: str) -> Any:
    return typer.Option(f"--{name}", metavar="DURATION", help=f"For border: {words}, such as: 5 minutes")


@dataclass(frozen=True)
class QueryOptions:
    """A query to add, or to replace another."""

    query_id: IdArgument
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEXT]",
            help="The query's text, such as: price < 40; - reads it from standard input",
            show_default=False,
        ),
    ] = None
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Read the text from a file")] = None
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="NAME=VALUE", help="Metadata: a pair, repeated for each; or a JSON object"),
    ] = None
    expires_at: ExpiresOption = None
    ttl: TtlOption = None
    dwell: Annotated[str | None, _option("dwell", "report an enter only after this time inside")] = None
    margin: Annotated[
        str | None,
        typer.Option(
            "--margin", metavar="NUMBER", help="For border: how far outside a key must be to leave: 0.5 or 50m"
        ),
    ] = None
    expire_after: Annotated[str | None, _option("expire-after", "a key without rows for longer leaves")] = None
    cooldown: Annotated[str | None, _option("cooldown", "hold back further events of a key for this time")] = None
    once: Annotated[
        bool | None,
        typer.Option("--once/--no-once", help="For border: report only the first enter of a key"),
    ] = None
    once_query: Annotated[
        bool, typer.Option("--once-query", help="For border: report only the first enter of any key, then end")
    ] = False
    within: Annotated[
        list[str] | None,
        typer.Option(
            "--within",
            metavar="DURATION",
            help="For window joins: the window; for one stream: left=10 seconds",
        ),
    ] = None
    rows: Annotated[
        list[str] | None,
        typer.Option("--rows", metavar="NUMBER", help="Or its number of rows: 100; for one stream: left=100"),
    ] = None
    low: Annotated[
        float | None,
        typer.Option("--low", metavar="NUMBER", help="For band joins: the low end", show_default="unbounded"),
    ] = None
    high: Annotated[
        float | None,
        typer.Option("--high", metavar="NUMBER", help="For band joins: the high end", show_default="unbounded"),
    ] = None
    x_low: Annotated[float | None, _side("low", "x")] = None
    x_high: Annotated[float | None, _side("high", "x")] = None
    y_low: Annotated[float | None, _side("low", "y")] = None
    y_high: Annotated[float | None, _side("high", "y")] = None
    z_low: Annotated[float | None, _side("low", "z")] = None
    z_high: Annotated[float | None, _side("high", "z")] = None
    expect_version: ExpectOption = None

    def read(self) -> dict[str, Any]:
        """The query as arguments of `Registry.add` and `Registry.replace`."""
        from vedette.queries.query_options import PER_QUERY  # takes long to import

        has_band = self.low is not None or self.high is not None
        band = {"low": self.low, "high": self.high} if has_band else {}
        sides = {name: getattr(self, name) for name in ("x_low", "x_high", "y_low", "y_high", "z_low", "z_high")}
        return {
            "text": read_text(self.text, self.file),
            "metadata": read_metadata(self.metadata),
            "expires_at": read_time(self.expires_at),
            "ttl": self.ttl,
            "dwell": _read_length(self.dwell),
            "margin": _read_length(self.margin),
            "expire_after": _read_length(self.expire_after),
            "cooldown": _read_length(self.cooldown),
            "once": PER_QUERY if self.once_query else self.once,
            "within": _by_stream("within", self.within, _read_length),
            "rows": _by_stream("rows", self.rows, _read_count),
            "expect_version": self.expect_version,
            **band,
            **{name: side for name, side in sides.items() if side is not None},
        }


def _by_stream(option: str, texts: list[str] | None, read: Callable[[str], Any]) -> Any:
    """`10 seconds` for all streams, or `left=10 seconds` for one."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return read(texts[0])
    pairs = [text.partition("=") for text in texts]
    if not all(sign for _, sign, _ in pairs):
        raise QueryError(f"must be one window for all streams, or left=100 for each; got {texts}", option=option)
    return {stream: read(value) for stream, _, value in pairs}


def _read_length(text: str | None) -> Any:
    from vedette.data.durations import number_or_duration

    return number_or_duration(text)


def _read_count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise QueryError(f"must be a whole number; got {text!r}", option="rows") from None
