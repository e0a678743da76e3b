"""Signatures and secrets: the library of the specification verifies them, and no message shows a secret."""

from __future__ import annotations

import base64
import pickle
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from vedette.delivery.signing import Secret, headers
from vedette.errors import PipelineError

KEY = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


@pytest.fixture
def secret():
    return Secret.find("HOOK", None, {"HOOK": f"whsec_{KEY}"})


def test_the_librarys_own_receiver_accepts_a_signature(secret):
    body = '{"group":null,"events":[{"event_id":"é"}]}'.encode()
    signed = headers(secret, "msg_1", int(time.time()), body)

    assert Webhook(f"whsec_{KEY}").verify(body, signed)["events"] == [{"event_id": "é"}]


@pytest.mark.parametrize("part", ["body", "webhook-id", "webhook-timestamp"])
def test_a_changed_request_is_not_accepted(secret, part):
    signed, body = headers(secret, "msg_1", int(time.time()), b"{}"), b"{}"
    signed, body = (signed, b"[]") if part == "body" else (signed | {part: str(int(time.time()) + 1)}, body)

    with pytest.raises(WebhookVerificationError):
        Webhook(f"whsec_{KEY}").verify(body, signed)


def test_an_old_request_is_not_accepted_again(secret):
    with pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(f"whsec_{KEY}").verify(b"{}", headers(secret, "msg_1", int(time.time()) - 3600, b"{}"))


def test_each_group_has_a_secret_of_its_own(secret):
    ann, bob = secret.of_group("ann"), secret.of_group("bob")
    signed = headers(ann, "msg_1", int(time.time()), b"{}")

    assert Webhook(ann.text()).verify(b"{}", signed) == {}
    with pytest.raises(WebhookVerificationError):
        Webhook(bob.text()).verify(b"{}", signed)


def test_without_a_secret_requests_are_not_signed():
    assert headers(None, "msg_1", 5, b"{}") == {"webhook-id": "msg_1", "webhook-timestamp": "5"}


def test_a_secret_is_not_shown(secret):
    assert repr(secret) == str(secret) == f"{secret}" == "Secret(...)"
    assert pickle.loads(pickle.dumps(secret)) == secret


def test_a_secret_may_be_in_a_file(tmp_path):
    (tmp_path / "secret").write_text("a text of enough length\n")

    assert Secret.find(None, tmp_path / "secret").key == b"a text of enough length"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"HOOK_SECRET": "x" * 32}, "secret_env names 'HOOK', but the environment has no such variable"),
        ({"HOOK": ""}, "secret_env names 'HOOK', but the environment has no such variable, or it is empty"),
        ({"HOOK": "hunter2"}, "secret_env has a secret of 7 bytes; use at least 16"),
        ({"HOOK": "whsec_hunter2!"}, "secret_env has a secret that begins with whsec_ but is not base64"),
    ],
)
def test_a_missing_or_weak_secret_is_refused_without_showing_it(environment, message):
    with pytest.raises(PipelineError) as caught:
        Secret.find("HOOK", None, environment)

    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(PipelineError, match=r"secret_file is '.*none', which cannot be read: No such file"):
        Secret.find(None, tmp_path / "none")
