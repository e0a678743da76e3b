"""The status of running pipelines in a registry."""

from __future__ import annotations

import json
from dataclasses import replace

from vedette.registry.pipelines import (
    LOST_SECONDS,
    PipelineRun,
    list_pipelines,
    read_events,
    write_events,
    write_run,
)

RUN = PipelineRun("r1", "ticks", "alerts", "border", "h1", 12, "0.9", "running", 3, {"out": {"batch": 4}})
SOURCE = ("ticks", "alerts", "out")


def states(database):
    return [(each.name, each.run, each.state) for each in list_pipelines(database)]


def test_a_run_is_read_as_it_was_written_last(registry, clock):
    write_run(registry.database, RUN)
    clock.advance(5)
    write_run(registry.database, replace(RUN, state="failed", error="no\0disk", sinks={"out": {"batch": 5}}))

    (found,) = list_pipelines(registry.database)

    assert (found.state, found.error, found.sinks) == ("failed", "no\ufffddisk", {"out": {"batch": 5}})
    assert (found.seen_at - found.started_at).total_seconds() == 5
    assert found.ended_at == found.seen_at
    assert found.to_record()["set"] == "alerts"


def test_a_killed_process_is_lost_after_the_stated_time_and_an_ended_one_never(registry, clock):
    write_run(registry.database, RUN)
    write_run(registry.database, replace(RUN, run="r2", name="done", state="ended"))
    clock.advance(LOST_SECONDS)
    assert [state for _, _, state in states(registry.database)] == ["ended", "running"]

    clock.advance(1)

    assert [state for _, _, state in states(registry.database)] == ["ended", "lost"]


def test_a_start_replaces_runs_of_the_same_pipeline_that_are_over_and_no_others(registry, clock):
    write_run(registry.database, RUN)  # lost
    clock.advance(LOST_SECONDS + 1)
    write_run(registry.database, replace(RUN, run="r2", set_name="others"))
    write_run(registry.database, replace(RUN, run="r3", state="failed"))
    write_run(registry.database, replace(RUN, run="r4"))  # twice at the same time
    clock.advance(1)
    write_run(registry.database, replace(RUN, run="r5"))

    assert states(registry.database) == [
        ("ticks", "r5", "running"),
        ("ticks", "r2", "running"),
        ("ticks", "r4", "running"),
    ]


def test_the_last_events_are_kept_and_a_repeated_micro_batch_replaces_its_own(registry, clock):
    database = registry.database
    for batch in range(5):
        clock.advance(1)
        write_events(database, SOURCE, batch, 0, [json.dumps({"n": 10 * batch + i}) for i in range(4)], keep=6)
    write_events(database, SOURCE, 4, 0, ['{"n": 99}', '{"n": 100}'], keep=6)
    write_events(database, ("ticks", "others", "out"), 0, 0, ['{"n": -1}'], keep=6)

    found = [each["event"]["n"] for each in read_events(database, "ticks", "alerts", 100)]

    assert found == [100, 99, 33, 32, 31, 30]
    assert [each["batch"] for each in read_events(database, "ticks", "alerts", 3)] == [4, 4, 3]
    assert read_events(database, "ti\0cks", "alerts", 3) == []


def test_an_event_that_is_too_long_is_left_out(registry):
    write_events(registry.database, SOURCE, 0, 0, [json.dumps("x" * 10_001), '{"n": 1}'], keep=6)

    assert [each["event"] for each in read_events(registry.database, "ticks", "alerts", 9)] == [{"n": 1}]
