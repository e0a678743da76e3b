"""The address of a Spark Connect server: an invalid one is refused, and an unreachable server is retryable."""

from __future__ import annotations

import socket

import pytest

from vedette.errors import PipelineError
from vedette.pipeline.remote import check_remote


@pytest.mark.parametrize(
    "address", ["sc://", "sc://:15002", "sc://host:0", "sc://host:x", "sc://a..b", f"sc://{'a' * 64}.org"]
)
def test_an_address_that_cannot_be_one_is_refused(address: str) -> None:
    with pytest.raises(PipelineError, match="the address is invalid; write sc://host or sc://host:15002") as caught:
        check_remote(address)

    assert not caught.value.is_retryable


def test_a_server_that_does_not_answer_may_do_so_later() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = one.getsockname()[1]
        with pytest.raises(PipelineError, match=f"no Spark Connect server answers at 127.0.0.1:{port}: ") as caught:
            check_remote(f"sc://127.0.0.1:{port}")
    assert caught.value.is_retryable
