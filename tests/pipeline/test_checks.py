"""Checks of a pipeline file against its set: errors name the key."""

from __future__ import annotations

import pytest

import vedette as vd
from vedette.errors import FileError, RegistryError, VedetteError
from vedette.pipeline.checks import check_hosts, check_set
from vedette.pipeline.file import PipelineFile
from vedette.pipeline.registered_set import try_to_pin

QUOTES = "symbol string, price double, ts timestamp, id bigint"


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    made.create("border", kind="border", schema="symbol string, price double, ts timestamp")
    made.create("time", kind="window join", left=QUOTES, right=QUOTES)
    made.create("any", kind="window join", left=QUOTES, right=QUOTES, windows="any")
    made.create("three", kind="window join", a=QUOTES, b=QUOTES, c=QUOTES)
    made.create("bands", kind="band join")
    made.create("zones", kind="moving join")
    return made


def plan_of(registry, name, spark=None, **operator):
    kind, streams = registry.set(name).kind, registry.set(name).streams or ["left", "right"]
    rate = {"format": "rate", "watermark": {"column": "ts", "delay": "1 minute"}}
    rows = {"source": rate} if kind in ("match", "border", "moving join") else {"sources": dict.fromkeys(streams, rate)}
    return PipelineFile(
        checkpoint="c",
        registry={"url": str(registry.database), "set": name},
        operator={"kind": kind, **operator},
        sink=[{"name": "console", "format": "console"}],
        spark=spark or {},
        **rows,
    )


BORDER = {"key": "symbol", "time": "ts"}


@pytest.mark.parametrize(
    ("name", "operator", "message"),
    [
        ("border", {**BORDER, "dwell": -1}, "operator.dwell must be "),
        ("border", {**BORDER, "expire_after": 5, "dwell": "1 minute"}, "operator.expire_after must be "),
        ("border", {**BORDER, "margin": {"prize": 1.0}}, "operator.margin names 'prize', which is not a numeric field"),
        ("border", {**BORDER, "margin": -1.0}, "operator.margin must be a number of 0 or more"),
        ("border", {**BORDER, "time": "symbol"}, "operator.time 'symbol' is string; a time must be a timestamp"),
        ("border", {**BORDER, "key": "price"}, "operator.key 'price' is double; a key must be a string"),
        ("zones", {"max_update_interval": 0}, "operator.max_update_interval must be a number above 0"),
        ("time", {}, "operator.time: it is missing, but set 'time' has time windows; give the"),
        ("time", {"time": {"left": "ts"}}, "operator.time is missing: the left stream has a time column"),
        (
            "any",
            {"layout": "grid"},
            "operator.layout: it is 'grid', but set 'any' may have windows that",
        ),
        (
            "any",
            {"shards": 2},
            "operator.shards: it is 2, but set 'any' may have windows that count rows",
        ),
        (
            "three",
            {"time": "ts", "shards": 2},
            "operator.shards: it is 2, but set 'three' has more than two",
        ),
    ],
)
def test_an_option_that_does_not_fit_the_set_is_refused_with_its_key(registry, name, operator, message):
    with pytest.raises(VedetteError) as caught:
        check_set(plan_of(registry, name, **operator), registry.set(name))

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("border", {**BORDER, "dwell": "1 minute", "margin": {"price": 0.5}, "shards": 8}),
        ("time", {"time": "ts", "layout": "grid", "shards": 4}),
        ("time", {"time": {"left": "ts", "right": "ts"}, "max_state_rows": 10}),
        ("any", {"shards": 1}),
        ("three", {"time": "ts"}),
        ("bands", {"report": "queries", "value": "price", "max_state_rows": 10, "shards": 4}),
        ("zones", {"max_update_interval": 60, "id": "ship", "expire_overdue": True, "late": "drop", "shards": 4}),
    ],
)
def test_options_that_fit_the_set_are_accepted(registry, name, operator):
    check_set(plan_of(registry, name, **operator), registry.set(name))


@pytest.mark.parametrize("at", [None, 0])
def test_a_sqlite_registry_is_refused_if_spark_runs_on_other_hosts(registry, at):
    with pytest.raises(VedetteError) as caught:
        check_hosts(plan_of(registry, "border", {"master": "yarn"}, **BORDER), registry.follow("border", version=at))

    assert str(caught.value) == (
        "registry.url: the registry is a SQLite file on this host, but Spark's workers run on other hosts "
        "(spark.master is 'yarn'); use a registry in PostgreSQL, or a local master"
    )


def test_a_fixed_version_of_a_set_with_an_unknown_type_of_ids_is_refused(registry):
    plan = plan_of(registry, "border", **BORDER)
    plan = plan.model_copy(update={"registry": plan.registry.model_copy(update={"version": 0})})

    with pytest.raises(
        FileError, match=r"^registry\.version: it is 0, but set 'border' has never had a query.*--ids TYPE$"
    ):
        check_set(plan, registry.set("border"))


def test_a_trial_pin_leaves_no_pin(registry):
    try_to_pin(registry, registry.set("border"))

    assert {each.n_pins for each in registry.stats().sets} == {0}
    assert registry.pin("5a5f", 0, "border") == 0


def test_a_trial_pin_fails_if_the_database_is_read_only(registry, tmp_path):
    closed = vd.Registry(f"sqlite:///file:{tmp_path}/alerts.db?mode=ro&uri=true")

    with pytest.raises(RegistryError) as caught:
        try_to_pin(closed, closed.set("border"))

    assert str(caught.value) == (
        f"the registry's database {closed.database} is read-only, but following a set records there which version each "
        f"micro-batch sees; grant the pipeline write access, or set a fixed version: version = 0 under [registry]"
    )
