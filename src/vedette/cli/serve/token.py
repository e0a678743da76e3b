"""`vedette serve token`: create, list and revoke tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.command import new_group
from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record, print_records
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import count


@with_groups
def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is; the history of sets has this name")],
    role: Annotated[str, typer.Option(metavar="read|write|admin", help="What it allows")] = "read",
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME", help="Confine it to this set; may be repeated")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="OWNER", help="Confine it to queries whose metadata has this owner")
    ] = None,
    max_queries: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=0, help="Limit on its active queries in a set; 0: it can add none"),
    ] = None,
    rows_per_second: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=0, help="Limit on its rows per second; 0: none")
    ] = None,
    ttl: Annotated[str | None, typer.Option(metavar="DURATION", help="It expires after this time: 30 days")] = None,
    registry: RegistryOption = None,
    answer: Answer,
) -> str:
    """Create a token and print it. It is not stored and cannot be shown again."""
    from vedette.registry.tokens import create_token

    database = open_registry(registry, create=True).database
    limits = {"max_queries": max_queries, "rows_per_second": rows_per_second}
    token, text = create_token(database, name, role, sets=sets or None, owner=owner, **limits, ttl=ttl)
    if answer.is_asked:
        print_record({"token": text, **token.to_record()}, answer.form)
    else:
        print(text)
    return f"created token {token.id} for {name!r} with the role {role}"


@with_groups
def list_(*, registry: RegistryOption = None, answer: Answer) -> str:
    """List tokens, without their secrets."""
    from vedette.registry.tokens import COLUMNS, list_tokens

    found = list_tokens(open_registry(registry).database)
    print_records([token.to_record() for token in found], COLUMNS, answer.form)
    return count(len(found), "token")


@with_groups
def revoke(
    *,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token, as `list` shows it")],
    registry: RegistryOption = None,
    answer: Answer,
) -> str:
    """Revoke a token. Running services refuse it within a second."""
    from vedette.registry.tokens import revoke_token

    token = revoke_token(open_registry(registry).database, token_id)
    print_record(token.to_record(), answer.form)
    return f"revoked token {token.id} of {token.name!r}"


token_app = new_group(
    "token",
    "Create, list and revoke the tokens of `vedette serve`.",
    {"create": create, "list": list_, "revoke": revoke},
)
