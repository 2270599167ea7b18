"""The OpenAPI document holds: whatever is sent, answers are as it says, and none is a 5xx."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from served import Process

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

EXAMPLES = int(os.environ.get("BOUNDARY_FOREST_SCHEMA_EXAMPLES", "5"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LEARNED = {
    "classification": {"rows": [[0.0], [9.0]], "targets": ["a", "b"], "ids": ["x", "y"]},
    "retrieval": {"rows": [[0.0], [9.0]], "ids": ["x", "y"]},
}


@pytest.mark.parametrize("task", LEARNED)
def test_answers_are_as_documented(task, tmp_path):
    with Process(tmp_path, "--task", task) as service:
        assert service.post("/v1/learn", LEARNED[task]).status == 200
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{service.port}/openapi.json")
        operations = [result.ok() for result in schema.get_all_operations()]
        assert len(operations) >= 12
        statuses = set()
        for operation in operations:
            _send_all(operation, GenerationMode.POSITIVE, statuses)
            if operation.body or operation.query:
                _send_all(operation, GenerationMode.NEGATIVE, statuses)
        assert {200, 422} <= statuses
        assert service.get("/v2/health/ready").status == 200
        assert not any('"request failed"' in line for line in service.lines)


def _send_all(operation, mode, statuses):
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def send(case):
        response = case.call(timeout=30)
        statuses.add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    send()
