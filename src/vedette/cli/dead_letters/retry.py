"""`vedette dead-letters retry`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.dead_letters.options import Choice
from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record


@with_groups
def retry(
    *,
    choice: Choice,
    secret_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The environment variable with the secret of signatures")
    ] = None,
    secret_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file with the secret of signatures")
    ] = None,
    secret_per_group: Annotated[
        bool, typer.Option("--secret-per-group", help="Sign with the secret of each group, as url_column does")
    ] = False,
    allow_addresses: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-address", metavar="NETWORK", help="Allow this address or network although it is not public"
        ),
    ] = None,
    answer: Answer,
) -> str:
    """Send events again, to the same URLs. Delivered events are removed; the others stay, with the new reason.

    A pipeline file has the secret and the allowed addresses. Without one, give them here.
    """
    from vedette.delivery.options import WebhookOptions
    from vedette.delivery.redelivery import redeliver

    given = WebhookOptions.read(
        None,
        secret_env=secret_env,
        secret_file=secret_file,
        allow_addresses=allow_addresses or (),
        has_secret_per_group=secret_per_group,
    )
    n_delivered = n_failed = 0
    for found in choice.find():
        delivered, failed = redeliver(found.place, found.letters, found.options or given)
        n_delivered, n_failed = n_delivered + delivered, n_failed + failed
    print_record({"delivered": n_delivered, "failed": n_failed}, answer.form)
    return f"{n_delivered:,} delivered and removed, {n_failed:,} failed again"
