"""The OpenAPI document is complete and true: random requests that it allows, and that it does not, get the answers it
documents, and never 5xx.
"""

from __future__ import annotations

import logging

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks
from serve.conftest import with_alerts

from tests.profiles import examples
from vedette.registry.tokens import create_token

MODES = list(schemathesis.GenerationMode)
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream", "text/csv")
def as_bytes(context, value):
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def routes(app):
    """The paths and methods that the application has."""
    found = set()
    for route in app.routes:
        for each in getattr(getattr(route, "original_router", route), "routes", [route]):
            for method in getattr(each, "methods", None) or ():
                found.add((each.path.replace(":path", ""), method.lower()))
    return found


def test_the_document_has_every_route_and_every_error(client):
    document = client.get("/openapi.json").json()
    described = {(path, method) for path, operations in document["paths"].items() for method in operations}

    assert {each for each in routes(client.app) if each[1] != "head"} - {
        ("/openapi.json", "get"),
        ("/", "get"),
    } <= described
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            statuses = set(operation["responses"])
            assert {"401", "403", "413", "429", "503"} <= statuses, (path, method)
            if "{set}" in path:
                assert "404" in statuses, (path, method)
            if "requestBody" in operation:
                assert {"400", "422"} <= statuses, (path, method)
                body = operation["requestBody"]["content"]
                assert "application/json" in body or "415" in statuses


def run_schemathesis(client, share, headers):
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json", headers=headers).json())
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in ("/v1/sets/{set}/events", "/v1/tokens"):  # an endless stream; would require tokens
            continue

        @examples(share, phases=[hypothesis.Phase.generate], suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in MODES)))
        def check(case):
            if "set" in (case.path_parameters or {}) and hash(str(case.path_parameters)) % 4:
                case.path_parameters["set"] = "alerts"
            if (case.method, case.path) in (("DELETE", "/v1/sets/{set}"), ("DELETE", "/v1/sets/{set}/monitor")):
                case.path_parameters["set"] = "nosuch"
            case.headers.pop("authorization", None)
            given = case.as_transport_kwargs(base_url="http://localhost")
            given["headers"] = {
                name: value for name, value in given["headers"].items() if name.lower() not in ("host", "origin")
            } | headers
            answer = client.request(
                given["method"], given["url"], **{
                    name: given[name] for name in ("headers", "params", "json") if name in given
                } | ({"content": given["data"]} if isinstance(given.get("data"), (bytes, str)) else {})
            )  # fmt: skip
            case.validate_response(answer, checks=CHECKS)

        check()


@pytest.mark.parametrize("share", [0.1, pytest.param(0.6, marks=pytest.mark.full)])
def test_random_requests_get_documented_answers(open_client, share):
    logging.disable(logging.CRITICAL)
    run_schemathesis(with_alerts(open_client()), share, headers={})


@pytest.mark.full
def test_random_requests_with_a_token_get_documented_answers(open_client, registry):
    logging.disable(logging.CRITICAL)
    client = with_alerts(open_client())
    _, text = create_token(registry.database, "x", "write", owner="ann", sets=["alerts"])
    client.run(client.service.poll())
    run_schemathesis(client, 0.2, headers={"authorization": f"Bearer {text}"})
