"""Forms of JSON: what is accepted, what is refused with its path, and the schemas that say the same."""

from __future__ import annotations

import json
from contextlib import nullcontext
from importlib import resources

import jsonschema_rs
import pytest

from tallystick.core.remote.policy import Policy
from tallystick.core.remote.refs import kept_ref
from tallystick.core.remote.routing import route, topic
from tallystick.core.remote.wire import (
    FORMS,
    Ack,
    Command,
    ProtocolDefinition,
    ResultReport,
    read,
    schema_of,
)
from tallystick.core.verbs.protocol.directives import read_ref
from tallystick.errors import BadCommand, BadJson, BadValue
from tallystick.http.openapi import document

COMMAND = {
    "tenant_id": "acme",
    "request_type": "ocr",
    "input_ref": "s3://in",
    "output_ref": {"uri": "s3://out", "checksum": "abc"},
    "payload": {"pages": [1, 2]},
    "schema_version": "v1",
}
REPORT = {"jobId": "j", "stepId": "ocr", "attempt_no": 1, "lease_id": "l"}
FAILED = {
    **REPORT,
    "status": "FAILED",
    "failure_class": "RETRYABLE",
    "error": {"code": "E", "message": "away"},
}
STEP = {"step_id": "ocr", "service": "ocr"}


def test_a_form_is_read_with_members_that_nobody_knows_yet():
    command = read(Command, json.dumps({**COMMAND, "later": True}).encode(), "command")
    assert (command.tenant_id, command.payload, command.mode) == ("acme", {"pages": [1, 2]}, None)


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        (Command, {**COMMAND, "tenant_id": 7}, "tenant_id"),
        (Command, {**COMMAND, "tenant_id": "../x"}, "tenant_id"),
        (Command, {**COMMAND, "payload": [1]}, "payload"),
        (Command, {**COMMAND, "input_ref": ""}, "input_ref"),
        (Command, {**COMMAND, "input_ref": '{"uri": "x"}'}, "input_ref"),
        (Command, {**COMMAND, "output_ref": {"uri": "x", "size_bytes": -1}}, "output_ref.size_bytes"),
        (Command, {**COMMAND, "mode": "FAST"}, "mode"),
        (Command, {**COMMAND, "schema_version": "v2"}, "schema_version"),
        (Command, {name: value for name, value in COMMAND.items() if name != "schema_version"}, ""),
        (Ack, {**REPORT, "attempt_no": 0}, "attempt_no"),
        (Ack, {**REPORT, "status": "DONE"}, "status"),
        (ResultReport, {**REPORT, "status": "MAYBE"}, "status"),
        (ResultReport, {**REPORT, "status": "FAILED"}, "failure_class"),
        (ResultReport, {**FAILED, "error": None}, "error"),
        (ResultReport, {**FAILED, "error": {"code": "E"}}, "error"),
        (ProtocolDefinition, {"id": "p", "request_types": [], "steps": [STEP]}, "request_types"),
        (ProtocolDefinition, {"id": "p", "request_types": ["t"], "steps": [STEP, STEP]}, "steps[1].step_id"),
        (
            ProtocolDefinition,
            {"id": "p", "request_types": ["t"], "steps": [{**STEP, "step_id": f"s{n}"} for n in range(100)]},
            "steps",
        ),
    ],
)
def test_a_mistake_is_told_with_its_path(kind, value, path):
    with pytest.raises(BadValue) as refused:
        read(kind, value, "form")
    assert refused.value.fields["path"] == path


def test_json_that_two_readers_could_understand_differently_is_refused():
    with pytest.raises(BadJson):
        read(Ack, b'{"jobId": "j", "jobId": "k"}', "ACK")


def test_copies_of_a_result_have_one_digest_whenever_they_were_sent():
    first = read(ResultReport, {**FAILED, "timestamp": "2026-01-01T00:00:00Z"}, "RESULT").answer()
    turned = dict(reversed(FAILED.items()))
    assert read(ResultReport, {**turned, "timestamp": "later"}, "RESULT").answer() == first
    assert (
        read(ResultReport, {**FAILED, "failure_class": "NON_RETRYABLE"}, "RESULT").answer().digest
        != first.digest
    )
    assert (first.succeeded, first.retryable, first.error_code) == (False, True, "E")


@pytest.mark.parametrize("ref", ["s3://in", {"uri": "s3://in", "metadata": {"pages": 3}}])
def test_a_reference_comes_back_as_it_was(ref):
    command = read(Command, {**COMMAND, "input_ref": ref}, "command")
    kept = read_ref(kept_ref(command.input_ref))
    assert kept == ref or json.loads(bytes(kept)) == ref


@pytest.mark.parametrize("name", sorted(FORMS))
def test_the_schema_of_a_form_is_shipped(name):
    file = resources.files("tallystick.core.remote") / "schema_files" / f"{name}.schema.json"
    assert json.loads(file.read_text("utf-8")) == json.loads(json.dumps(schema_of(name)))


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED"])
@pytest.mark.parametrize("failure_class", ["absent", None, "RETRYABLE"])
@pytest.mark.parametrize("error", ["absent", None, {"code": "E", "message": "m"}])
def test_the_schema_refuses_a_failure_without_its_class_or_error_as_reading_does(
    status, failure_class, error
):
    said = {"jobId": "j", "stepId": "s", "attempt_no": 1, "lease_id": "l", "status": status}
    said |= {"failure_class": failure_class} if failure_class != "absent" else {}
    said |= {"error": error} if error != "absent" else {}
    taken = status == "SUCCEEDED" or (failure_class == "RETRYABLE" and isinstance(error, dict))
    with nullcontext() if taken else pytest.raises(BadValue, match="its status is FAILED"):
        read(ResultReport, said, "RESULT")
    whole = schema_of("result")
    components = {"components": {"schemas": document()["components"]["schemas"]}}
    for schema in (whole, {**components, "$ref": "#/components/schemas/ResultReport"}):
        assert jsonschema_rs.validator_for(schema).is_valid(said) is taken


class TestRouting:
    def test_the_mode_is_that_of_the_request_else_of_the_tenant_else_of_all(self):
        policy = Policy(mode="BURST", tenant_mode="DEFAULT")
        assert route("t", "d", "BURST", policy).decision_source == "request"
        assert route("t", "d", None, policy)[::3] == ("DEFAULT", "tenant")
        assert route("t", "d", None, Policy(mode="BURST"))[::3] == ("BURST", "global")

    def test_the_key_is_trimmed_and_in_lower_case_and_the_lane_is_its_checksum(self):
        for tenant in ("acme", " ACME ", "Acme"):
            assert route(tenant, None, None, Policy()).routing_key_used == "acme"
        assert route("acme", None, None, Policy()).lane == "14"
        assert topic("ocr", "14") == "ocr-p14"

    @pytest.mark.parametrize("doc_id", [None, "", "  "])
    def test_burst_without_a_document_is_refused(self, doc_id):
        with pytest.raises(BadCommand) as refused:
            route("acme", doc_id, "BURST", Policy())
        assert refused.value.fields["path"] == "doc_id"
