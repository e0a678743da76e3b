"""`vedette registry compact`."""

from __future__ import annotations

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_records
from vedette.cli.registry.options import SetsArgument
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import count


@with_groups
def compact(*, sets: SetsArgument = None, registry: RegistryOption = None, answer: Answer) -> str:
    """Write a new snapshot of each set, so that workers load it fast."""
    opened = open_registry(registry)
    done = []
    for info in [opened.set(name) for name in sets] if sets else opened.sets():
        made = opened.compact(info.name)
        done.append({"set": info.name, "version": made.version, "bytes": made.n_bytes, "file": made.file})
    print_records(done, ("set", "version", "bytes", "file"), answer.form)
    return f"wrote {count(len(done), 'snapshot')}"
