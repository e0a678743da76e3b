"""The pipelines that share the registry, over HTTP."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vedette.registry.pipelines import PipelineRun, write_events, write_run
from vedette.registry.tokens import create_token

PROGRESS = {
    "batch": 4, "rows_in_total": 10, "matches_out_total": 2, "malformed_total": 0, "rows_per_second": 1.5,
    "batch_seconds": 0.2, "lag_rows": None, "lag_seconds": 1.0, "version": 7, "dead_letters_total": 0,
}  # fmt: skip
RUN = PipelineRun("r1", "ticks", "alerts", "border", "h1", 12, "0.9", "running", 3, {"out": PROGRESS})


@pytest.fixture
def running(registry):
    write_run(registry.database, RUN)
    write_run(registry.database, replace(RUN, run="r2", name="vans", set_name="zones", state="failed", error="full"))
    write_events(registry.database, ("ticks", "alerts", "out"), 4, 0, ['{"n": 1}', '{"n": 2}'], keep=5)


def test_pipelines_are_listed_with_their_progress(client, running):
    found = client.get("/v1/pipelines").json()

    assert [(each["name"], each["state"], each["error"]) for each in found] == [
        ("ticks", "running", None),
        ("vans", "failed", "full"),
    ]
    assert found[0]["sinks"] == [{"sink": "out", **PROGRESS}]
    assert [each["name"] for each in client.get("/v1/pipelines?set=zones").json()] == ["vans"]
    assert client.get("/v1/pipelines/ticks").json() == found[0]


def test_the_last_events_of_a_pipeline_are_shown_newest_first(client, running):
    assert client.get("/v1/pipelines/ticks/events?limit=1").json() == [{"sink": "out", "batch": 4, "event": {"n": 2}}]
    assert [each["event"]["n"] for each in client.get("/v1/pipelines/ticks/events").json()] == [2, 1]
    assert client.get("/v1/pipelines/vans/events").json() == []


def test_a_pipeline_that_does_not_exist_is_404(client, running):
    for path in ("/v1/pipelines/none", "/v1/pipelines/none/events", "/v1/pipelines/ticks?set=zones"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_pipeline")


def test_a_confined_token_sees_the_pipelines_of_its_sets_only(client, registry, running):
    _, of_zones = create_token(registry.database, "z", "read", sets=["zones"])
    _, of_ann = create_token(registry.database, "a", "read", owner="ann")
    client.run(client.service.poll())

    of_zones, of_ann = ({"authorization": f"Bearer {text}"} for text in (of_zones, of_ann))

    assert [each["name"] for each in client.get("/v1/pipelines", headers=of_zones).json()] == ["vans"]
    assert client.get("/v1/pipelines/ticks/events", headers=of_zones).status_code == 404
    assert client.get("/v1/pipelines", headers=of_ann).status_code == 403
