"""Random changes by two writers of one database, compared with plain Python."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from registry.registry_model import Model, RefusedError

import vedette as vd
from vedette.queries.set_changes import Changes


def states(changes: Changes, active: dict[Any, str]) -> Iterator[tuple[int, dict[Any, str]]]:
    """The active queries at each version, from those before and the changes."""
    for each in changes.by_version():
        for query_id in each.removed_ids:
            del active[query_id]
        for query_id, text in zip(each.added_ids, each.texts or [], strict=True):
            assert query_id not in active
            active[query_id] = text
        yield int(each.versions[0]), dict(active)


def moment(microseconds: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=microseconds)


def random_steps(chance: random.Random, ids: list[Any], now: int) -> list[tuple[Any, ...]]:
    steps: list[tuple[Any, ...]] = []
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        text = f"price > {chance.randrange(100)}"
        action = chance.choice(["add", "add", "replace", "remove"])
        if action == "add":
            expires = chance.choice([None, None, now + chance.randrange(5_000_000)])
            steps.append((action, chance.choice(ids), text, expires))
        elif action == "replace":
            steps.append((action, chance.choice(ids), text))
        else:
            steps.append((action, chance.choice(ids)))
    return steps


def apply(registry: vd.Registry, steps: list[tuple[Any, ...]]) -> int:
    """With the shortest call that can do it."""
    actions = {step[0] for step in steps}
    if len(steps) == 1 and actions == {"add"}:
        (_, query_id, text, expires) = steps[0]
        return registry.add("alerts", query_id, text, expires_at=expires and moment(expires))
    if len(steps) == 1 and actions == {"replace"}:
        return registry.replace("alerts", *steps[0][1:])
    if len(steps) == 1:
        return registry.remove("alerts", steps[0][1])
    if actions == {"remove"} and len({step[1] for step in steps}) == len(steps):
        return registry.remove_many("alerts", [step[1] for step in steps])
    with registry.change("alerts") as change:
        for action, query_id, *values in steps:
            if action == "add":
                change.add(query_id, values[0], expires_at=values[1] and moment(values[1]))
            elif action == "replace":
                change.replace(query_id, values[0])
            else:
                change.remove(query_id)
    assert change.version is not None
    return change.version


@pytest.mark.parametrize("seed", range(4))
def test_every_version_of_two_writers_equals_the_model(
    open_registry: Callable[..., vd.Registry], clock: Any, seed: int
) -> None:
    chance = random.Random(seed)
    writers = [open_registry(), open_registry()]
    writers[0].create("alerts", schema="price double")
    ids: list[Any] = [f"q{i}" for i in range(8)] if seed % 2 else list(range(8))
    model = Model()
    for _ in range(60):
        clock.advance(chance.choice([0.0, 0.1, 1.0]))
        writer = chance.choice(writers)
        steps = random_steps(chance, ids, clock.microseconds)
        try:
            model.change(steps, clock.microseconds)
        except RefusedError:
            with pytest.raises(vd.QueryError, match=r"already exists in|no query .* in|does not exist: an|added twice"):
                apply(writer, steps)
            model.expire(clock.microseconds)
            writer.end_due("alerts")
        else:
            assert apply(writer, steps) == model.version
        reader = chance.choice(writers)
        assert {each.id: each.text for each in reader.list("alerts", limit=None)} == model.active()
        info = reader.set("alerts")
        assert (info.version, info.n_active) == (model.version, len(model.active()))
    check_all_versions(writers[0], model, chance)
    assert writers[0].verify() == []


def check_all_versions(registry: vd.Registry, model: Model, chance: random.Random) -> None:
    for since in sorted({0, model.version, *(chance.randrange(model.version + 1) for _ in range(8))}):
        until = chance.randrange(since, model.version + 1)
        changes = registry.changes("alerts", since=since, until=until)
        assert changes.versions.tolist() == list(range(since + 1, until + 1))
        for version, active in states(changes, model.active(since)):
            assert active == model.active(version)
        pieces = list(registry.active("alerts", at=since, each=3))
        found = {
            query: text for piece in pieces for query, text in zip(piece.added_ids, piece.texts or [], strict=True)
        }
        assert found == model.active(since)
        assert [piece.versions.tolist() for piece in pieces] == [[]] * (len(pieces) - 1) + [[since]]
    for query_id in {revision.query_id for revision in model.revisions}:
        revisions = [
            (revision.text, revision.added, revision.removed, revision.reason)
            for revision in model.revisions
            if revision.query_id == query_id
        ]
        history = [
            (each.text, each.added_version, each.removed_version, each.state)
            for each in registry.history("alerts", query_id)
        ]
        assert history == revisions
    marks = registry.changes("alerts", since=0).marks
    assert len(set(marks.tolist())) == len(marks) == model.version
    assert marks.min() > 0
