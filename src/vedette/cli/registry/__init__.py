"""`vedette registry`: maintenance of a registry."""

from __future__ import annotations

from vedette.cli.command import new_group
from vedette.cli.registry.compact import compact
from vedette.cli.registry.pins import pins
from vedette.cli.registry.pipelines import pipelines
from vedette.cli.registry.stats import stats
from vedette.cli.registry.unpin import unpin
from vedette.cli.registry.verify import verify

registry_app = new_group(
    "registry",
    "Inspect and maintain a registry.",
    {"compact": compact, "stats": stats, "pins": pins, "unpin": unpin, "verify": verify, "pipelines": pipelines},
)
