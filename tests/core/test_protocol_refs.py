"""References of protocol jobs travel word for word, and directives go where the rules of the job say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tallystick.core.json_forms.canonical import idempotency_hash
from tallystick.core.pictures import Now
from tallystick.core.remote.commands import as_job
from tallystick.core.remote.plans import InsertOutbox, InsertProtocolJob, InsertProtocolStep, MoveProtocolStep
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.refs import Ref, told_refs
from tallystick.core.remote.requests import AnswerStep, StepFence, SubmitCommand
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture
from tallystick.core.remote.wire import (
    Command,
    ProtocolDefinition,
    ResultReport,
    StepDefinition,
    read,
    read_directive,
)
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.core.verbs.protocol.submitting import submit
from tallystick.errors import BadValue

PROTOCOL = ProtocolDefinition("p", ["scan"], [StepDefinition("a", "svc"), StepDefinition("b", "svc")])
COMMAND: dict[str, Any] = {
    "tenant_id": "acme",
    "request_type": "scan",
    "input_ref": "s3://in",
    "output_ref": "s3://out",
    "payload": {},
    "schema_version": "v1",
}
PLAIN = {"uri": "s3://in", "checksum": "c", "metadata": {"b": 1, "a": None}}
VERSIONED = {"uri": "s3://in", "version_id": 1, "size_bytes": 3}
NOW = Now(1_000)


def asked(policy: Policy = Policy(), **members: object) -> SubmitCommand:  # noqa: B008 (it never changes)
    said = read(Command, json.dumps({**COMMAND, **members}).encode(), "command")
    return as_job(said, PROTOCOL, policy, job_id="j", lease_id="l1")


def began(policy: Policy = Policy(), **members: object) -> ProtocolPicture:  # noqa: B008 (it never changes)
    """Return a job whose first directive is on its way."""
    writes = submit(asked(policy, **members), NOW).writes
    (job,) = (write.job for write in writes if isinstance(write, InsertProtocolJob))
    steps = tuple(write.step for write in writes if isinstance(write, InsertProtocolStep))
    return ProtocolPicture(job, steps, made(writes))


def made(writes: tuple[object, ...]) -> OutboxRow:
    """Return the directive that a plan makes."""
    (row,) = (write.row for write in writes if isinstance(write, InsertOutbox))
    return row


def answered(picture: ProtocolPicture, **said: object) -> tuple[object, ...]:
    """Return what the RESULT of the first step comes to."""
    fence = StepFence("j", "a", 1, "l1")
    told = {"jobId": "j", "stepId": "a", "attempt_no": 1, "lease_id": "l1", "status": "SUCCEEDED", **said}
    result = read(ResultReport, json.dumps(told).encode(), "RESULT")
    return decide(picture, AnswerStep(fence, result.answer(), "l2"), NOW).writes


def directive(row: OutboxRow | None) -> dict[str, Any]:
    assert row is not None
    return json.loads(row.payload)


@pytest.mark.parametrize("ref", ["s3://in", PLAIN, {"uri": "s3://in"}])
def test_a_plain_reference_has_the_hash_that_it_always_had(ref):
    known = read(Command, {**COMMAND, "input_ref": ref}, "command").input_ref
    members = {**COMMAND, "input_ref": known if isinstance(known, str) else {**ref}}
    assert asked(input_ref=ref).about.idempotency_hash == idempotency_hash(**members)


def test_two_references_that_differ_in_a_member_that_is_not_known_are_two_commands():
    hashes = {asked(input_ref={**VERSIONED, "version_id": n}).about.idempotency_hash for n in (1, 2, 2)}
    hashes |= {asked(output_ref={**VERSIONED, "version_id": n}).about.idempotency_hash for n in (1, 2)}
    assert len(hashes) == 4
    turned = dict(reversed(VERSIONED.items()))
    assert asked(input_ref=turned).about.idempotency_hash in hashes


def test_a_reference_travels_word_for_word_from_command_to_directive_to_result_to_the_next_step():
    picture = began(input_ref=VERSIONED, output_ref={**VERSIONED, "uri": "s3://out"})
    first = directive(picture.pending)
    assert (first["input_ref"], first["output_ref"]["version_id"]) == (VERSIONED, 1)
    left, artifact = {"uri": "s3://mid", "etag": "e"}, {"uri": "s3://log", "lines": 7}
    writes = answered(picture, output_ref=left, workspace_ref=VERSIONED, artifact_refs=["s3://a", artifact])
    second = directive(made(writes))
    assert (second["input_ref"], second["workspace_ref"]) == (left, VERSIONED)
    (ended,) = (w.step for w in writes if isinstance(w, MoveProtocolStep) and w.step.step_id == "a")
    assert json.loads(ended.notes or "") == {"artifact_refs": ["s3://a", artifact]}


def test_a_remote_worker_reads_what_is_not_known_and_sends_it_on():
    row = began(input_ref=VERSIONED).pending
    assert row is not None
    given = read_directive(row.payload.encode())
    assert isinstance(given.input_ref, Ref)
    assert (given.input_ref.uri, given.input_ref.more) == ("s3://in", {"version_id": 1})
    result = ResultReport(
        "j", "a", 1, "l1", "SUCCEEDED", output_ref=given.input_ref, artifact_refs=[given.input_ref]
    )
    said = told_refs(result)
    assert (said.output_ref, said.artifact_refs) == (VERSIONED, [VERSIONED])


def test_results_that_differ_in_a_member_of_a_reference_are_two_answers():
    report = {"jobId": "j", "stepId": "a", "attempt_no": 1, "lease_id": "l1", "status": "SUCCEEDED"}
    digests = {
        read(ResultReport, {**report, "output_ref": {"uri": "s3://mid", "version_id": n}}, "RESULT")
        .answer()
        .digest
        for n in (1, 2, 2)
    }
    assert len(digests) == 2


def test_a_result_without_a_workspace_leaves_the_one_of_its_step():
    picture = began()
    first, second = picture.steps
    kept = picture._replace(steps=(first._replace(workspace_ref="s3://before"), second))
    assert directive(made(answered(kept)))["workspace_ref"] == "s3://before"
    assert directive(made(answered(kept, workspace_ref="s3://new")))["workspace_ref"] == "s3://new"
    assert "workspace_ref" not in directive(made(answered(picture)))


def test_a_directive_goes_to_the_topic_of_the_prefix_or_else_of_its_service():
    for prefix, name in (("", "svc"), ("work", "work")):
        row = began(Policy(topic_prefix=prefix)).pending
        assert row is not None
        assert row.topic == f"{name}-p{row.lane}"


def test_what_a_program_puts_in_that_is_no_json_is_refused_with_its_path():
    for name, value in (("payload", {"a": object()}), ("input_ref", {"uri": "x", "more": object()})):
        said = read(Command, {**COMMAND, name: value}, "command")
        with pytest.raises(BadValue, match="cannot be kept as JSON") as refused:
            as_job(said, PROTOCOL, Policy(), job_id="j", lease_id="l1")
        assert refused.value.fields["path"] == name


def test_a_command_of_another_version_is_refused_with_its_path():
    for said in (lambda: asked(schema_version="v2"), built_by_a_program):
        with pytest.raises(BadValue) as refused:
            said()
        assert refused.value.fields["path"] == "schema_version"


def built_by_a_program() -> SubmitCommand:
    command = Command("acme", "scan", "in", "out", {}, "v2")  # type: ignore[arg-type]  # what is refused
    return as_job(command, PROTOCOL, Policy(), job_id="j", lease_id="l1")
