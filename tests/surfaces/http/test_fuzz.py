"""Requests that nobody of us thought of, made from the OpenAPI document: it lists every answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tallystick.app.remote.api_keys import make_key
from tallystick.http import http_app
from tallystick.http.routes import ENDPOINTS, ApiRoute
from tests.surfaces.http.served import make_app, sqlite_url

SCOPES = ("jobs:read", "jobs:write", "work", "admin")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
HOST = "localhost"
# What takes something can be asked in two ways: as the document says, and not.
ASKED = [endpoint for endpoint in ENDPOINTS if endpoint.scope or endpoint.reporter]
PER_ROUTE = 4
PER_ROUTE_LONG = 600


class Fuzzed:
    """An API with a few jobs, and the schema that asks it."""

    def __init__(self, folder: Path) -> None:
        self.app = make_app(sqlite_url(folder))
        runtime = self.app.runtime()
        _kept, self.key = make_key(runtime.committer, runtime.ids, "acme", SCOPES, ("ocr", "embed"))
        workflow = self.app.workflows["doubled", ""]
        self.job_id = workflow.opts(tenant="acme").submit(1).id
        api = http_app(self.app, hosts=[HOST], in_flight_max=10**9, open_docs=True)
        self.schema = schemathesis.openapi.from_asgi("/openapi.json", api, headers={"Host": HOST})

    def ask(self, endpoint: ApiRoute, mode: GenerationMode, examples: int) -> int:
        """Ask one route so often, and return how many requests were made."""
        operation = self.schema[endpoint.path][endpoint.method]
        made = 0

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(mode))
        def asked(case: schemathesis.Case) -> None:
            nonlocal made
            made += 1
            if case.query and "wait" in case.query:
                case.query["wait"] = 0  # nobody waits here
            if made % 2 and "job_id" in (case.path_parameters or {}):
                case.path_parameters["job_id"] = self.job_id
            headers = {"Host": HOST, "Authorization": f"Bearer {self.key}"}
            response = case.call(headers=headers)
            case.validate_response(response, checks=CHECKS)

        asked()
        return made


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Fuzzed]:
    made = Fuzzed(tmp_path)
    yield made
    made.app.close()


@pytest.mark.slow
def test_the_api_answers_as_its_document_says(fuzzed: Fuzzed):
    for endpoint in ASKED:
        for mode in MODES:
            fuzzed.ask(endpoint, mode, PER_ROUTE)


@pytest.mark.long
def test_the_api_answers_as_its_document_says_20_000_times(fuzzed: Fuzzed):
    assert sum(fuzzed.ask(endpoint, mode, PER_ROUTE_LONG) for endpoint in ASKED for mode in MODES) >= 20_000
