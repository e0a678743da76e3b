"""`vedette registry pins`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_records
from vedette.cli.registry.options import SetsArgument
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import count

if TYPE_CHECKING:
    from vedette.registry.read.pins import PinnedStream

_COLUMNS = ("set", "stream", "first_batch", "last_batch", "version", "pinned_at")


@with_groups
def pins(*, sets: SetsArgument = None, registry: RegistryOption = None, answer: Answer) -> str:
    """List the streams that follow sets: the batches whose versions are pinned, and the version of the last batch.

    The version that a stream pinned last is kept until `vedette registry unpin` deletes the pin.
    """
    opened = open_registry(registry)
    wanted: list[str | None] = list(sets) if sets else [None]
    found = [_to_record(each) for name in wanted for each in opened.pins(name)]
    print_records(found, _COLUMNS, answer.form)
    return count(len(found), "pinned stream")


def _to_record(pinned: PinnedStream) -> dict[str, Any]:
    return {
        "set": pinned.set_name,
        "stream": pinned.stream,
        "first_batch": pinned.first_batch,
        "last_batch": pinned.last_batch,
        "version": pinned.version,
        "pinned_at": pinned.pinned_at,
    }
