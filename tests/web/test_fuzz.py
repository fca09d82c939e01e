"""Requests nobody thought of: whatever fits the OpenAPI document, or nearly does, has an answer that it tells
of, and none of them is our fault."""

from __future__ import annotations

import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.door import House

EXAMPLES = int(os.environ.get("MAINSPRING_FUZZ", "3"))
MODES = {
    "sqlite": (GenerationMode.POSITIVE, GenerationMode.NEGATIVE),
    "postgres": (GenerationMode.POSITIVE,),  # what is refused at the door reaches no store
}
TOO_LONG = 414
ENDLESS = "GET /api/v1/stream"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
IDS = st.sampled_from([1, 2, 3, 4, 5, 99, 2**63 - 1])
NAMES = st.sampled_from(["nightly", "default", "pair", "first", "nothing~here"])


def test_every_operation_answers_as_the_document_says(house: House, backend: str) -> None:
    document = house.get("/openapi.json").json()
    del document["security"], document["components"]["securitySchemes"]  # tests say who they are otherwise
    operations = [each.ok() for each in schemathesis.openapi.from_dict(document).get_all_operations()]

    for operation in operations:
        if operation.label != ENDLESS:  # test_live.py
            for mode in MODES[backend]:
                _try(house, operation, mode)

    assert len(operations) == sum(len(each) for each in document["paths"].values()) > 60


def _try(house: House, operation: Any, mode: GenerationMode) -> None:
    if mode is GenerationMode.NEGATIVE and not _can_be_wrong(operation):
        return

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def attempt(case: Any, data: Any) -> None:
        if mode is GenerationMode.POSITIVE:
            # Real ones, where chance alone would find none.
            for name in case.path_parameters or {}:
                case.path_parameters[name] = data.draw(IDS if name.endswith("_id") else NAMES)
        asked = case.as_transport_kwargs(base_url="http://127.0.0.1")
        asked["headers"] = {**dict(asked["headers"] or {}), "X-As": "admin"}
        asked = {
            name: asked[name]
            for name in ("method", "url", "headers", "params", "json", "data")
            if asked.get(name) is not None
        }
        if "data" in asked:
            asked["content"] = asked.pop("data")
        response = house.client.request(**asked)
        case.validate_response(response, checks=CHECKS)
        if mode is GenerationMode.NEGATIVE and response.status_code != TOO_LONG:
            case.validate_response(response, checks=[negative_data_rejection])

    attempt()


def _can_be_wrong(operation: Any) -> bool:
    return bool(operation.body) or any(True for _ in operation.iter_parameters())
