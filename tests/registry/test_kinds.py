"""The table of kinds, which the registry, pipeline files, Spark and the CLI read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

import vedette as vd
from vedette.registry.forms import ARGUMENTS, STORED
from vedette.registry.kinds import KINDS, find_kind, kinds_for
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.tables import revisions

INFO = SetInfo("s", "u", "match", {"": "x double"}, 0, "UTC", None, None, 0, 0, 0, 0, datetime.now(UTC), 1)
SCHEMAS = {"one": {"": "x double"}, "streams": {"left": "x double", "right": "x double"}, "none": {}}


@pytest.mark.parametrize("name", KINDS)
def test_a_row_makes_an_empty_set_of_its_class(name: str) -> None:
    kind = KINDS[name]
    info = replace(INFO, kind=name, schema=SCHEMAS[kind.schemas], dimensions=2 if name == "moving join" else None)

    made = kind.make(kind.load_class(), info)

    assert (type(made).__name__, len(made), made.version) == (kind.set_class[1], 0, 0)
    assert kind.name in kind.operators
    assert hasattr(made, "apply")


def test_every_operator_has_its_own_kind() -> None:
    operators = {operator for kind in KINDS.values() for operator in kind.operators}

    assert operators == set(KINDS)
    assert [kind.name for kind in kinds_for("match")] == ["match", "border"]
    assert all(kinds_for(operator)[0].name == operator for operator in operators)


def test_stored_columns_of_a_form_are_columns_of_the_table_of_revisions() -> None:
    assert set(STORED) <= set(revisions.c.keys())
    assert set(STORED) | {"within", "rows"} == set(ARGUMENTS) | {"windows"}


def test_an_unknown_kind_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        vd.RegistryError, match=r"unknown kind of set: 'moving joins'; kinds are: .*did you mean 'moving join'"
    ):
        find_kind("moving joins")
    with pytest.raises(vd.RegistryError, match="unknown kind"):
        find_kind(["match"])


def test_a_border_set_refuses_a_use_of_now_that_no_monitor_can_follow(registry):
    registry.create("fleet", schema="ts timestamp", kind="border")
    registry.create("alerts", schema="ts timestamp")
    registry.add("alerts", "odd", "coalesce(ts, now()) > TIMESTAMP '2026-01-01'")
    registry.add("fleet", "fresh", "ts > now() - INTERVAL 1 DAY")

    with pytest.raises(
        vd.QueryError, match=r"query 'odd': border monitoring cannot follow now\(\) in 'coalesce'; compare"
    ):
        registry.add("fleet", "odd", "coalesce(ts, now()) > TIMESTAMP '2026-01-01'")
    assert registry.set("fleet").version == 1
