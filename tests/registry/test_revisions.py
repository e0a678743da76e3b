"""A set as it was at a version: queries, history and versions, against a plain record of what was done."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import vedette as vd
from vedette.registry.read.revisions import read_revisions, read_versions


def change_at_random(registry: vd.Registry, n_changes: int) -> list[dict[str, str]]:
    """Change a set; returns the texts of the active queries by version."""
    random, states = np.random.default_rng(3), [dict[str, str]()]
    for number in range(n_changes):
        now, query = dict(states[-1]), f"q{random.integers(0, 4)}"
        text = f"price < {number}"
        if query not in now:
            registry.add("alerts", query, text)
            now[query] = text
        elif random.random() < 0.5:
            registry.replace("alerts", query, text)
            now[query] = text
        else:
            registry.remove("alerts", query)
            del now[query]
        states.append(now)
    return states


@pytest.mark.parametrize("each", [1, 3, 1000])
def test_queries_and_history_are_those_of_the_version(registry: vd.Registry, each: int) -> None:
    registry.create("other", schema="price double")
    registry.add("other", "o", "price < 0")
    info = registry.create("alerts", schema="price double")
    states = change_at_random(registry, 25)

    def read(at: int, **options: Any) -> list[Any]:
        pages = read_revisions(registry.database, info, at, each=each, **options)
        return [query for page in pages for query in page]

    for at, state in enumerate(states):
        active, history = read(at, active_only=True), read(at, active_only=False)
        assert {query.id: query.text for query in active} == state
        assert {query.id: query.text for query in history if query.state == "active"} == state
        assert len(active) == len(state)
        assert all(query.state in ("removed", "replaced") for query in history if query.removed_version is not None)
        assert all(query.removed_version <= at for query in history if query.removed_version is not None)
        assert all(query.ended_at is None for query in history if query.removed_version is None)
        begun = [set(now.items()) - set(before.items()) for before, now in pairwise(states[: at + 1])]
        assert len(history) == sum(map(len, begun))


def test_versions_count_what_begins_and_ends_with_them(registry: vd.Registry) -> None:
    info = registry.create("alerts", schema="price double")
    registry.add_many("alerts", ["a", "b"], ["price < 1", "price < 2"])
    with registry.change("alerts") as change:
        change.replace("a", "price < 3")
        change.remove("b")
    registry.add("alerts", "c", "price < 4")

    found = read_versions(registry.database, info, 2)

    assert [(each.version, each.n_added, each.n_removed) for each in found] == [(0, 0, 0), (1, 2, 0), (2, 1, 2)]
    assert all(before.made_at <= after.made_at for before, after in pairwise(found))


def test_a_version_that_does_not_exist_is_refused(registry: vd.Registry) -> None:
    info = registry.create("alerts", schema="price double")

    with pytest.raises(vd.RegistryError, match="set 'alerts' has no version 3; it is at version 0"):
        list(read_revisions(registry.database, info, 3, active_only=True))
    with pytest.raises(vd.RegistryError, match="has no version 3"):
        read_versions(registry.database, info, 3)
