"""A webhook as the sink of `vedette run`: delivery, dead letters, malformed records, counts, and a second try."""

from __future__ import annotations

import json

import pytest

import vedette as vd
from tests.delivery.receiver import answer, serve
from vedette.delivery.dead_letters import open_letters

PIPELINE = """
name = "fleet"
checkpoint = "{folder}/checkpoint"
trigger = "available now"
[source]
format = "text"
path = "{folder}/rows"
decode = "json"
malformed = "dead-letter"
[registry]
url = "sqlite:///{folder}/zones.db"
set = "zones"
[operator]
kind = "border"
key = "van"
time = "ts"
on_bad_row = "dead-letter"
shards = 2
[[sink]]
name = "hook"
format = "webhook"
select = ["*", "if(key = 'a', 'ann', 'bob') AS owner"]
[sink.webhook]
url = "{url}"
group_by = "owner"
secret_env = "FLEET_SECRET"
allow_addresses = ["127.0.0.1"]
"""
ROWS = [
    {"van": "a", "x": 1.0, "ts": "2026-03-02T14:00:00Z"},
    {"van": "b", "x": 1.0, "ts": "2026-03-02T14:00:00Z"},
    {"van": None, "x": 1.0, "ts": "2026-03-02T14:00:00Z"},
]


def test_a_pipeline_delivers_what_it_can_and_keeps_the_rest(spark, run, tmp_path, monkeypatch):
    monkeypatch.setenv("FLEET_SECRET", "a secret of enough length")
    registry = vd.Registry(f"sqlite:///{tmp_path}/zones.db")
    registry.create("zones", kind="border", schema="van string, x double, ts timestamp")
    registry.add("zones", "depot", "x < 5")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "1.json").write_text("\n".join([*map(json.dumps, ROWS), "{no json"]))
    is_down = True
    with serve(
        lambda n: answer(400, b"no bob") if is_down and b'"bob"' in receiver.requests[n].body else None
    ) as receiver:
        file = tmp_path / "fleet.toml"
        file.write_text(PIPELINE.format(folder=tmp_path, url=receiver.url))
        code, _, err = run("run", file, "--log", "json")
        logged = [json.loads(line) for line in err.splitlines()]
        assert code == 0, err
        assert [json.loads(got.body)["group"] for got in receiver.accepted] == ["ann"]
        (batch,) = (each for each in logged if each["event"] == "batch" and each["rows_in"])
        counted = ("malformed", "bad_rows", "delivered", "dead_letters", "retries")
        assert {name: batch[name] for name in counted} == dict(zip(counted, (1, 1, 1, 1, 0), strict=True))
        letters = {(each.kind, each.source, each.reason[-40:]) for each in open_letters(registry).read()}
        assert ("row", "fleet:hook", "the key, column 'van', is null") in letters
        assert ("row", "fleet:source", "the record cannot be decoded") in letters
        is_down = False
        code, out, err = run("dead-letters", "retry", file, "--csv")
        assert (code, out.splitlines()) == (0, ["delivered,failed", "1,0"]), err

    assert sorted(json.loads(got.body)["group"] for got in receiver.accepted) == ["ann", "bob"]
    assert {each.kind for each in open_letters(registry).read()} == {"row"}
    assert "a secret of enough length" not in err + "".join(map(str, logged))
    registry.close()


@pytest.mark.full
def test_an_unknown_group_is_refused_by_a_dry_run_with_its_key(spark, run, tmp_path, monkeypatch):
    monkeypatch.setenv("FLEET_SECRET", "a secret of enough length")
    registry = vd.Registry(f"sqlite:///{tmp_path}/zones.db")
    registry.create("zones", kind="border", schema="van string, x double, ts timestamp")
    registry.close()
    (tmp_path / "rows").mkdir()
    file = tmp_path / "fleet.toml"
    text = PIPELINE.format(folder=tmp_path, url="http://127.0.0.1:9/")
    file.write_text(text.replace('group_by = "owner"', 'group_by = "ownr"'))

    code, _, err = run("run", file, "--dry-run")
    assert code == 2
    assert "127.0.0.1:9 cannot be reached: Connection refused; the pipeline starts, and delivery is retried" in err
    assert "sink 'hook'.webhook.group_by is 'ownr', which is not a column or an expression" in err
    file.write_text(text)
    assert "webhook at 127.0.0.1:9, grouped by owner, signed" in run("run", file, "--dry-run")[1]
