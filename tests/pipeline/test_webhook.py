"""The webhook of a sink in a pipeline file: what is refused before anything runs, and what is only warned about."""

from __future__ import annotations

import logging

import pytest

from tests.delivery.receiver import serve
from tests.pipeline.test_file import GOOD, read, refusal
from tests.ports import free_port
from vedette.errors import PipelineError
from vedette.pipeline.checks import warn_unreachable

HOOK = """
format = "webhook"
[sink.webhook]
url = "https://hooks.example.com/T0/secret-path"
group_by = "owner"
secret_env = "HOOK_SECRET"
"""


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", "a secret of enough length")


def with_hook(**keys: str) -> str:
    """The file with a webhook; a key is replaced, added, or with None removed."""
    lines = [line for line in HOOK.strip().splitlines() if line.split(" = ")[0] not in keys]
    lines += [f"{name} = {value}" for name, value in keys.items() if value is not None]
    return GOOD.replace('format = "console"', "\n".join(lines))


def test_a_webhook_has_the_defaults_of_the_transform(tmp_path):
    import inspect

    from vedette import spark as vs

    plan = read(tmp_path, with_hook()).plan
    part = plan.sink[0].webhook
    defaults = {name: each.default for name, each in inspect.signature(vs.webhook).parameters.items()}
    differ = {"url", "group_by", "secret_env"}  # given above

    assert {name: tuple(value) if isinstance(value, list) else value for name, value in part if name not in differ} == {
        name: value for name, value in defaults.items() if name not in {*differ, "dead_letters", "name", "observe"}
    }
    assert plan.dead_letter_place == plan.registry.url


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"url": '"ftp://x/"'}, "sink 1.webhook: url is invalid: 'ftp://x/' has the scheme 'ftp'"),
        ({"url": '"https://u:hunter2@x/"'}, "the URL of host x has a user or a password"),
        ({"url": None}, "sink 1.webhook: one of url and url_column is required"),
        ({"url_column": '"hook"'}, "sink 1.webhook: one of url and url_column is required"),
        ({"secret_env": '"HOOK_SECRETS"'}, "secret_env names 'HOOK_SECRETS', but the environment has no such variable"),
        ({"secret_file": '"/none"'}, "secret_env and secret_file are both given"),
        ({"secret_env": None, "secret_file": '"/none"'}, "secret_file is '/none', which cannot be read"),
        ({"allow_addresses": '["10.0.0.0/99"]'}, "allow_addresses must have addresses or networks"),
        ({"attempts": "0"}, "attempts must be a number from 1 to 100; got 0"),
        ({"max_events": "0"}, "max_events must be a number from 1 to 10,000; got 0"),
        ({"time_limit": '"soon"'}, "sink 1.webhook.time_limit: it must be a duration such as '5 minutes'; got 'soon'"),
        ({"groupby": '"owner"'}, "sink 1.webhook.groupby: unknown key;"),
        ({"groupby": '"owner"'}, "did you mean 'group_by'?"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_key(tmp_path, keys, message):
    found = refusal(tmp_path, with_hook(**keys))

    assert message in found
    assert "hunter2" not in found


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ('format = "webhook"', 'format = "parquet"', 'a webhook needs format = "webhook" and a table [sink.webhook]'),
        ('format = "webhook"', 'format = "webhook"\npath = "x"', "path cannot be set for a webhook, which sends JSON"),
        ('format = "webhook"', 'format = "webhook"\nencode = "json"', "encode cannot be set for a webhook"),
    ],
)
def test_a_sink_is_a_webhook_or_a_format_of_spark(tmp_path, good, bad, message):
    assert message in refusal(tmp_path, with_hook().replace(good, bad))


def test_a_webhook_without_its_table_is_refused(tmp_path):
    assert "the table [sink.webhook] is missing" in refusal(tmp_path, GOOD.replace("console", "webhook"))


def test_an_unreachable_receiver_is_a_warning(tmp_path, caplog):
    port = free_port()
    plan = read(tmp_path, with_hook(url=f'"http://127.0.0.1:{port}/x"', allow_addresses='["127.0.0.1"]')).plan
    with caplog.at_level(logging.WARNING, "vedette"):
        warn_unreachable(plan)

    expected = f"sink 'webhook': 127.0.0.1:{port} cannot be reached: Connection refused; the pipeline starts, and"
    assert [record.getMessage()[: len(expected)] for record in caplog.records] == [expected]


def test_a_host_without_an_address_is_a_warning(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "vedette"):
        warn_unreachable(read(tmp_path, with_hook(url='"https://no-such-host.invalid/x"')).plan)

    assert "the host of no-such-host.invalid:443 cannot be found" in caplog.text


def test_a_reachable_receiver_is_not_warned_about(tmp_path, caplog):
    with serve() as receiver:
        warn_unreachable(read(tmp_path, with_hook(url=f'"{receiver.url}"', allow_addresses='["127.0.0.0/8"]')).plan)

    assert (receiver.requests, caplog.records) == ([], [])


def test_an_address_that_is_not_allowed_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(
        PipelineError,
        match=r"^sink 'webhook'\.webhook\.url leads to host localhost, which is refused: address \S+ is not public",
    ):
        warn_unreachable(read(tmp_path, with_hook(url='"http://localhost:9/x"')).plan)
