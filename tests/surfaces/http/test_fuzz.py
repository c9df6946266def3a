"""Requests that nobody of us thought of, made from the OpenAPI document: it lists every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.requests import DeliverDirective, StepFence
from tallystick.http import http_app
from tallystick.http.routes import ENDPOINTS, ApiRoute
from tests.surfaces.http.served import COMMAND, make_app, sqlite_url

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
TOGETHER = "/v1/callbacks"
# What a submission must name for a job to be made.
KNOWN: dict[str, dict[str, object]] = {
    "/v1/commands": {"tenant_id": "acme", "request_type": "scan", "protocol_id": "ocr-embed"},
    "/v1/jobs": {"tenant": "acme", "workflow": "doubled", "version": None, "arguments": [1]},
}
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
        self.http = http_app(self.app, hosts=[HOST], in_flight_max=10**9, open_docs=True)
        self.schema = schemathesis.openapi.from_asgi("/openapi.json", self.http, headers={"Host": HOST})
        self.answers: Counter[tuple[str, int]] = Counter()

    def attempt(self) -> tuple[dict[str, Any], str]:
        """Return what a report has to say of a new attempt that is out, and the token of that attempt."""
        runtime = self.app.runtime()
        command = {**COMMAND, "payload": {"page": runtime.ids.new()}}
        job_id = self.app.command(command).id
        outcome = runtime.committer.call((DeliverDirective(job_id, "ocr", 1, "w"),))
        assert isinstance(outcome, Hearing), outcome
        picture = self.http.api.protocols.protocol(job_id)
        assert picture is not None
        step = picture.steps[0]
        fence = StepFence(job_id, "ocr", 1, step.lease_id)
        token = self.http.api.token("acme", fence, step.lease_expires_at or 0)
        return {"jobId": job_id, "stepId": "ocr", "attempt_no": 1, "lease_id": step.lease_id}, token

    def ask(self, endpoint: ApiRoute, mode: GenerationMode, examples: int) -> int:
        """Ask one route so often, and return how many requests were made.

        A report is about an attempt that is out, with the token of that attempt: two of three about one that
        has had reports. Every sixth brings a key instead, and is turned away at the door.
        """
        operation = self.schema[endpoint.path][endpoint.method]
        made = 0
        about, token = self.attempt() if endpoint.reporter else ({}, "")

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
            nonlocal made, about, token
            made += 1
            if case.query and "wait" in case.query:
                case.query["wait"] = 0  # nobody waits here
            if made % 2 and "job_id" in (case.path_parameters or {}):
                case.path_parameters["job_id"] = self.job_id
            if made % 2 and endpoint.path in KNOWN and isinstance(case.body, dict):
                case.body.update(KNOWN[endpoint.path])
            bearer = self.key
            if endpoint.reporter and made % 6:
                if made % 3 == 1:
                    about, token = self.attempt()
                bearer = token
                if isinstance(case.body, dict):
                    case.body.update(about)
            if endpoint.path == TOGETHER and isinstance(case.body, dict):
                reports = case.body.get("reports")
                for each in reports if isinstance(reports, list) else ():
                    if isinstance(each, dict) and isinstance(each.get("report"), dict):
                        about, each["token"] = self.attempt()
                        each["report"].update(about)
            headers = {"Host": HOST, "Authorization": f"Bearer {bearer}"}
            response = case.call(headers=headers)
            case.validate_response(response, checks=CHECKS)
            self.answers[endpoint.path, response.status_code] += 1

        asked()
        return made


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Fuzzed]:
    made = Fuzzed(tmp_path)
    yield made
    made.app.close()


def check_reports(fuzzed: Fuzzed) -> None:
    """Insist that reports on every route came behind the door."""
    reported = [endpoint.path for endpoint in ASKED if endpoint.reporter]
    assert all((path, 200) in fuzzed.answers for path in reported), fuzzed.answers


@pytest.mark.slow
def test_the_api_answers_as_its_document_says(fuzzed: Fuzzed):
    for endpoint in ASKED:
        for mode in MODES:
            fuzzed.ask(endpoint, mode, PER_ROUTE)
    check_reports(fuzzed)


@pytest.mark.long
def test_the_api_answers_as_its_document_says_20_000_times(fuzzed: Fuzzed):
    made = sum(fuzzed.ask(endpoint, mode, PER_ROUTE_LONG) for endpoint in ASKED for mode in MODES)
    assert made >= 20_000
    print(made, "requests", sorted(fuzzed.answers.items()))  # noqa: T201 (the figure of a long run)
    check_reports(fuzzed)
    reported = [endpoint.path for endpoint in ASKED if endpoint.reporter]
    assert all((path, 422) in fuzzed.answers for path in reported), fuzzed.answers
