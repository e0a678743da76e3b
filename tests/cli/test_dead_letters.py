"""`vedette dead-letters`: list, retry and drop, at a folder, a registry and the sink of a pipeline file."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

import vedette as vd
from tests.delivery.receiver import answer, serve
from vedette.delivery.dead_letters import EVENT, ROW, Letter, Part, open_letters
from vedette.delivery.signing import Secret

SECRET = "a secret of enough length"


@pytest.fixture
def url(tmp_path):
    made = f"sqlite:///{tmp_path}/alerts.db"
    vd.Registry(made).close()
    return made


@pytest.fixture(params=["folder", "registry"])
def place(request, tmp_path, url):
    return str(tmp_path / "letters") if request.param == "folder" else url


def write(place, url="http://127.0.0.1:9/", source="fleet:hook"):
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    letters = [
        Letter(f"e{i}", EVENT, source, f'{{"event_id":"e{i}"}}', "down", at, url, "ab"[i % 2], 503, 8) for i in range(3)
    ]
    row = Letter("r", ROW, source, '{"key":null}', "the key is null", at)
    open_letters(place).write(Part("s", 7, "0"), [*letters, row])


def listed(out):
    return [(row["id"], row["group"], row["reason"]) for row in csv.DictReader(io.StringIO(out))]


def test_letters_are_listed_with_their_reasons(run, place):
    write(place)

    code, out, _ = run("dead-letters", "list", place)
    assert code == 0
    assert listed(out) == [("e0", "a", "down"), ("e1", "b", "down"), ("e2", "a", "down"), ("r", "", "the key is null")]
    assert listed(run("dead-letters", "list", place, "--group", "a", "--limit", "1")[1]) == [("e0", "a", "down")]
    (row,) = json.loads(run("dead-letters", "list", place, "--kind", "row", "--json")[1])
    assert (row["body"], row["failed_at"]) == ('{"key":null}', "2026-03-01T12:00:00+00:00")


def test_delivered_letters_are_removed_and_failed_ones_stay(run, place, monkeypatch):
    monkeypatch.setenv("HOOK", SECRET)
    with serve(lambda n: answer(410, b"gone") if n else None) as receiver:
        write(place, receiver.url)
        options = ("--secret-env", "HOOK", "--allow-address", "127.0.0.1", "--csv")
        code, out, _ = run("dead-letters", "retry", place, *options)

    (got,) = receiver.accepted
    assert (code, out.splitlines()) == (0, ["delivered,failed", f"{len(got.ids)},{3 - len(got.ids)}"])
    assert Webhook(Secret(SECRET.encode()).text()).verify(got.body, got.headers)
    left = listed(run("dead-letters", "list", place, "--kind", "event")[1])
    assert {row[0] for row in left} == {"e0", "e1", "e2"} - set(got.ids)
    assert all(row[2].endswith("answered 410: 'gone'") for row in left)


def test_a_loopback_address_is_refused_unless_allowed(run, tmp_path):
    with serve() as receiver:
        write(tmp_path / "letters", receiver.url)
        code, out, _ = run("dead-letters", "retry", tmp_path / "letters", "--csv")

    assert (code, out.splitlines()[1], receiver.requests) == (0, "0,3", [])


def test_letters_are_dropped_if_they_are_chosen(run, place):
    write(place)

    code, _, err = run("dead-letters", "drop", place)
    assert (code, err.strip()) == (
        2,
        "vedette: choose letters with --id, --source, --group or --kind, or all of them with --all",
    )
    assert run("dead-letters", "drop", place, "--group", "a", "--dry-run")[1].split()[-1] == "2"
    assert run("dead-letters", "drop", place, "--id", "e0", "--id", "r")[1].split()[-1] == "2"
    assert [row[0] for row in listed(run("dead-letters", "list", place)[1])] == ["e1", "e2"]
    assert run("dead-letters", "drop", place, "--all")[1].split()[-1] == "2"


def test_a_pipeline_file_says_where_the_letters_are_and_how_to_send_them(run, tmp_path, url, monkeypatch):
    monkeypatch.setenv("HOOK", SECRET)
    with serve() as receiver:
        file = tmp_path / "fleet.toml"
        file.write_text(
            f"""
            checkpoint = "c"
            source = {{ format = "rate" }}
            registry = {{ url = "{url}", set = "alerts" }}
            operator = {{ kind = "match" }}
            [[sink]]
            name = "hook"
            format = "webhook"
            webhook = {{ url = "{receiver.url}", secret_env = "HOOK", allow_addresses = ["127.0.0.1"] }}
            """
        )
        write(url, receiver.url)
        write(url, receiver.url, source="other:hook")
        code, out, err = run("dead-letters", "retry", file, "--csv")

    assert (code, out.splitlines()) == (0, ["delivered,failed", "3,0"]), err
    assert sorted(receiver.ids) == ["e0", "e1", "e2"]
    assert all("webhook-signature" in got.headers for got in receiver.accepted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "none"], "there is no folder 'none'; give a folder, a registry or a pipeline file"),
        (["list", "none.toml"], "cannot read none.toml: No such file or directory"),
        (["list", "sqlite:///none.db"], "none.db; create one with `vedette set create`"),
        (["list", ".", "--kind", "rwo"], "--kind must be one of: event, row; got 'rwo'; did you mean 'row'?"),
        (["retry", ".", "--secret-env", "NO_SUCH"], "--secret-env names 'NO_SUCH', but the environment has no such"),
        (["retry", ".", "--allow-address", "x"], "--allow-address must have addresses or networks"),
    ],
)
def test_a_mistake_is_one_sentence(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("dead-letters", *arguments)

    assert code == 2
    assert message in err
