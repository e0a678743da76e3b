"""`vedette query`: the queries of a set in a registry, one by one or by the file."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record, print_records
from vedette.cli.set_options import ChosenSet, read_id
from vedette.errors import FileError, QueryError
from vedette.files.json_text import read_json

if TYPE_CHECKING:
    from vedette.registry.read.query_info import QueryInfo
    from vedette.registry.read.set_info import SetInfo

query_app = typer.Typer(help="Look at queries, and add, change and remove them in a registry.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The query's id", show_default=False)]
ExpiresOption = Annotated[
    str | None,
    typer.Option(
        "--expires-at", metavar="TIME", help="When it ends, as in: 2026-03-02T14:00:00Z; without a zone in UTC"
    ),
]
TtlOption = Annotated[str | None, typer.Option("--ttl", metavar="DURATION", help="Or how long it stands: 5 minutes")]
ExpectOption = Annotated[
    int | None, typer.Option("--expect-version", help="Change nothing if the set is not at this version")
]


def columns_of(info: SetInfo) -> tuple[str, ...]:
    """The columns of a query in files and tables: its id, and how it is written."""
    from vedette.registry.kinds import KINDS

    written = KINDS[info.kind].form.written
    return ("id", *written[: 2 * info.dimensions]) if info.dimensions else ("id", *written)


@dataclass(frozen=True)
class GivenQuery:
    """A query to be added or put in the place of another, as it is given."""

    query_id: IdArgument
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEXT]",
            help="The query's text, as in: price < 40; - reads it from standard input",
            show_default=False,
        ),
    ] = None
    file: Annotated[Path | None, typer.Option("--file", help="Read the text from a file", show_default=False)] = None
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="NAME=VALUE", help="Metadata: a pair, again for each; or a JSON object"),
    ] = None
    expires_at: ExpiresOption = None
    ttl: TtlOption = None
    within: Annotated[
        list[str] | None,
        typer.Option(
            "--within", metavar="DURATION", help="Of a window join: how long rows wait; of one: left=10 seconds"
        ),
    ] = None
    rows: Annotated[
        list[str] | None, typer.Option("--rows", metavar="NUMBER", help="Or how many rows: 100; of one: left=100")
    ] = None
    low: Annotated[float | None, typer.Option("--low", help="Of a band: its low end; one may be left out")] = None
    high: Annotated[float | None, typer.Option("--high", help="And its high end")] = None
    x_low: Annotated[float | None, typer.Option("--x-low", help="Of a zone: its low side along x")] = None
    x_high: Annotated[float | None, typer.Option("--x-high", help="And its high side along x")] = None
    y_low: Annotated[float | None, typer.Option("--y-low", help="Its low side along y")] = None
    y_high: Annotated[float | None, typer.Option("--y-high", help="Its high side along y")] = None
    z_low: Annotated[float | None, typer.Option("--z-low", help="In three dimensions, its low side along z")] = None
    z_high: Annotated[float | None, typer.Option("--z-high", help="And its high side along z")] = None
    expect_version: ExpectOption = None

    def read(self) -> dict[str, Any]:
        """The query as a registry takes it."""
        has_band = self.low is not None or self.high is not None
        band = {"low": self.low, "high": self.high} if has_band else {}
        sides = {name: getattr(self, name) for name in ("x_low", "x_high", "y_low", "y_high", "z_low", "z_high")}
        return {
            "text": read_text(self.text, self.file),
            "metadata": read_metadata(self.metadata),
            "expires_at": read_time(self.expires_at),
            "ttl": self.ttl,
            "within": _by_stream(self.within, _as_given),
            "rows": _by_stream(self.rows, _read_count),
            "expect_version": self.expect_version,
            **band,
            **{name: side for name, side in sides.items() if side is not None},
        }


@query_app.command("add")
@with_groups
def add_command(query: GivenQuery, chosen: ChosenSet, answer: Answer) -> None:
    """Let a query stand. Pipelines that follow the set have it from their next micro-batch on."""
    opened, info = chosen.open()
    version = opened.add(info.name, read_id(query.query_id, info), **query.read())
    print_record({"set": info.name, "id": query.query_id, "version": version}, answer.form)


@query_app.command("replace")
@with_groups
def replace_command(query: GivenQuery, chosen: ChosenSet, answer: Answer) -> None:
    """Change a query that stands or is parked; it keeps what is not given. --expires-at never takes an end away.

    A band is given whole: --low and --high, of which -inf and inf are none.
    """
    opened, info = chosen.open()
    if info.kind == "band join" and (query.low is None) != (query.high is None):
        raise QueryError("a band is replaced as a whole: give --low and --high; -inf and inf are none")
    version = opened.replace(info.name, read_id(query.query_id, info), **query.read())
    print_record({"set": info.name, "id": query.query_id, "version": version}, answer.form)


@query_app.command("remove")
@with_groups
def remove_command(
    *,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="The queries' ids; - reads them from standard input", show_default=False
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Read the ids from a file, one a line")] = None,
    expect_version: ExpectOption = None,
    chosen: ChosenSet,
    answer: Answer,
) -> None:
    """Let queries stand no longer: all of them, or where one is unknown none."""
    opened, info = chosen.open()
    read = [read_id(text, info) for text in _read_ids(ids or [], file)]
    version = opened.remove_many(info.name, read, expect_version=expect_version)
    print_record({"set": info.name, "removed": len(read), "version": version}, answer.form)


@query_app.command("list")
@with_groups
def list_command(
    *,
    prefix: Annotated[str | None, typer.Option(help="Only ids that begin so")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Only with this metadata; again for each")
    ] = None,
    state: Annotated[
        str, typer.Option(metavar="STATE", help="active, parked (a new schema broke them), removed or expired")
    ] = "active",
    after: Annotated[str | None, typer.Option(metavar="ID", help="Go on after this id")] = None,
    limit: Annotated[int, typer.Option(help="At most so many", min=1)] = 100,
    chosen: ChosenSet,
    answer: Answer,
) -> None:
    """List queries in the order of their ids, a page at a time."""
    opened, info = chosen.open()
    found = opened.list(
        info.name,
        prefix=prefix,
        metadata=read_metadata(metadata) or {},
        state=state,
        after=None if after is None else read_id(after, info),
        limit=limit,
    )
    columns = (*columns_of(info), "metadata", "expires_at", "added")
    print_records([to_record(query, info) for query in found], columns, answer.form)
    if len(found) == limit and answer.form == "table":
        print(f"there may be more: --after {found[-1].id}", file=sys.stderr)


@query_app.command("show")
@with_groups
def show_command(query_id: IdArgument, chosen: ChosenSet, answer: Answer) -> None:
    """Show one query with all that is known of it."""
    opened, info = chosen.open()
    print_record(to_record(opened.get(info.name, read_id(query_id, info)), info), answer.form)


@query_app.command("history")
@with_groups
def history_command(query_id: IdArgument, chosen: ChosenSet, answer: Answer) -> None:
    """Show what stood under an id, from which version until which, and why it ended; oldest first."""
    opened, info = chosen.open()
    revisions = opened.history(info.name, read_id(query_id, info))
    columns = (*columns_of(info), "state", "added", "removed", "created_at", "ended_at", "metadata", "expires_at")
    print_records([to_record(query, info) for query in revisions], columns, answer.form)


@query_app.command("import")
@with_groups
def import_command(
    *,
    file: Annotated[
        str, typer.Argument(help="CSV, JSON lines, Parquet or GeoJSON; - is standard input", show_default=False)
    ],
    form_in: Annotated[str, typer.Option("--format", metavar="csv|jsonl", help="Of standard input")] = "csv",
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Upsert by id: change those that stand, which keep what the file lacks, and add the others",
        ),
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out those that are wrong, and count them")
    ] = False,
    expires_at: ExpiresOption = None,
    ttl: TtlOption = None,
    chosen: ChosenSet,
    answer: Answer,
) -> None:
    """Let the queries of a file stand, all in one version, or with one that is wrong none.

    Columns are as `vedette query export` writes them; further ones become metadata.
    """
    from vedette.cli.query_import import import_queries

    opened, info = chosen.open()
    ends = {"expires_at": read_time(expires_at), "ttl": ttl}
    done = import_queries(opened, info, file, form_in, ends, replace=replace, skip_bad=skip_bad)
    print_record({"set": info.name, **done}, answer.form)


@query_app.command("export")
@with_groups
def export_command(
    *,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where to write: .csv, .jsonl or .parquet  [default: standard output]"),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="Only ids that begin so")] = None,
    chosen: ChosenSet,
    answer: Answer,
) -> None:
    """Write all queries that stand, at one version. What goes into a file, `vedette query import` reads."""
    from vedette.cli.query_export import export_queries

    export_queries(*chosen.open(), out, answer, prefix)


def to_record(query: QueryInfo, info: SetInfo) -> dict[str, Any]:
    """A query under the names that files have."""
    from vedette.registry.kinds import KINDS

    return {
        "id": query.id,
        **KINDS[info.kind].form.to_record(query),
        "state": query.state,
        "metadata": query.metadata,
        "expires_at": query.expires_at,
        "added": query.added_version,
        "removed": query.removed_version,
        "created_at": query.created_at,
        "ended_at": query.ended_at,
    }


def read_metadata(given: list[str] | None) -> dict[str, Any] | None:
    """Metadata of `owner=me` or of a JSON object; numbers, true and false in pairs are read as JSON has them."""
    if not given:
        return None
    read: dict[str, Any] = {}
    for text in given:
        if text.lstrip().startswith("{"):
            read |= _read_object(text)
            continue
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise QueryError(f"metadata is given as name=value, or as a JSON object; got {text!r}")
        read[name] = read_value(value)
    return read


def read_value(text: str) -> Any:
    """A value of metadata: as JSON has it, else the text itself."""
    try:
        return read_json(text, parse_constant=_refuse_constant, parse_float=_read_float)
    except ValueError:
        return text


def read_time(text: str | None) -> datetime | str | None:
    """A moment, which without a zone is UTC; or `never`."""
    if text is None or text == "never":
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise QueryError(f"--expires-at takes a time such as 2026-03-02T14:00:00Z; got {text!r}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_text(text: str | None, file: Path | None) -> str | None:
    """The text of a query: as it is given, from standard input, or from a file."""
    if text is not None and file is not None:
        raise QueryError("the query's text is given and --file too; a query has one text")
    if file is not None:
        return _read_file(file).strip()
    return _read_input().strip() if text == "-" else text


def _read_ids(ids: list[str], file: Path | None) -> list[str]:
    """Ids as they are given; of a file or standard input, a line each, and empty lines are none."""
    read = [text for text in ids if text != "-"]
    lines = _read_input().split("\n") if "-" in ids else []
    if file is not None:
        lines += _read_file(file).split("\n")
    read += [line for line in (each.removesuffix("\r") for each in lines) if line]
    if not read:
        raise QueryError("no id is given; name them, or read them with --file or - from standard input")
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


def _by_stream(given: list[str] | None, read: Any) -> Any:
    """`10 seconds` for all streams, or `left=10 seconds` for one."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return read(given[0])
    pairs = [text.partition("=") for text in given]
    if not all(sign for _, sign, _ in pairs):
        raise QueryError(f"a window is given once for all streams, or by stream as in left=100; got {given}")
    return {stream: read(value) for stream, _, value in pairs}


def _as_given(text: str) -> Any:
    from vedette.data.durations import number_or_duration

    return number_or_duration(text)


def _read_count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise QueryError(f"--rows takes a whole number; got {text!r}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse_constant(text)
    return number


def _read_object(text: str) -> dict[str, Any]:
    try:
        read = read_json(text)
    except ValueError as error:
        raise QueryError(f"metadata that begins with a brace is JSON: {error}") from None
    return dict(read)
