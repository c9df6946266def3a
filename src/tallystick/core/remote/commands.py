"""A command and a protocol make the rows of a job, before anything is stored."""

from __future__ import annotations

import msgspec

from tallystick.core.json_forms.canonical import CANON_VERSION, idempotency_hash
from tallystick.core.lifecycles import JOB, STEP
from tallystick.core.limits import PAYLOAD_BYTES_MAX, check_key, check_text
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.refs import kept_ref, told_ref
from tallystick.core.remote.requests import NewProtocolJob, SubmitCommand
from tallystick.core.remote.routing import route
from tallystick.core.remote.rows import ProtocolJob, ProtocolStep
from tallystick.core.remote.wire import VERSION, Command, ProtocolDefinition
from tallystick.core.values import Reservation
from tallystick.errors import BadCommand, BadValue


def as_job(
    command: Command, protocol: ProtocolDefinition, policy: Policy, *, job_id: str, lease_id: str
) -> SubmitCommand:
    """Return the submission of a command; it is known by its key or, without one, by its content."""
    _refuse(command, protocol)
    route(command.tenant_id, command.doc_id, command.mode, policy)  # refused here, and not by the store
    payload = check_text("payload", _written(command.payload, "payload"), PAYLOAD_BYTES_MAX)
    content = _content(command)
    key = command.idempotency_key
    scope, value = ("content", content) if key is None else ("key", check_key("idempotency key", key))
    job = ProtocolJob(
        job_id=job_id,
        tenant_id=command.tenant_id,
        state=JOB.start.value,
        rev=1,
        semaphore=len(protocol.steps),
        root_ledger=0,
        start_ledger=0,
        protocol_id=protocol.id,
        mode=command.mode,
        doc_id=command.doc_id,
        input_ref=kept_ref(command.input_ref),
        output_ref=kept_ref(command.output_ref),
        payload=payload,
        options=policy.written(),
        current_step_id=None,
        current_step_index=None,
        attempts_total=0,
        correlation_id=command.correlation_id,
        traceparent=command.traceparent,
        completed_at=None,
    )
    about = NewProtocolJob(command.request_type, command.schema_version, key, content, CANON_VERSION)
    steps = tuple(_step(job_id, index, command, protocol) for index in range(len(protocol.steps)))
    reservation = Reservation(
        command.tenant_id, "content" if scope == "content" else "key", value, content, CANON_VERSION
    )
    return SubmitCommand(job, about, steps, reservation, lease_id)


def _refuse(command: Command, protocol: ProtocolDefinition) -> None:
    """Refuse a command of a type that the protocol does not take, or of another version of the forms."""
    if command.request_type not in protocol.request_types:
        raise BadCommand(
            f"the protocol {protocol.id} takes no command of the type {command.request_type!r}; "
            f"it takes {', '.join(protocol.request_types)}",
            path="request_type",
        )
    if command.schema_version != VERSION:
        raise BadValue(
            f"schema_version of this command is {command.schema_version!r}; known is {VERSION}",
            path="schema_version",
            what="command",
        )


def _content(command: Command) -> str:
    """Return the hash of what a command asks for; its references count as they were sent."""
    refs = {"input_ref": told_ref(command.input_ref), "output_ref": told_ref(command.output_ref)}
    for name, ref in refs.items():
        _written(ref, name)
    return idempotency_hash(
        tenant_id=command.tenant_id,
        request_type=command.request_type,
        **{name: msgspec.to_builtins(ref) for name, ref in refs.items()},
        payload=command.payload,
        schema_version=command.schema_version,
    )


def _written(value: object, path: str) -> str:
    """Return a member of a command as JSON; a program may have put in what is none."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError) as error:
        raise BadValue(
            f"{path} of this command cannot be kept as JSON: {error}", path=path, what="command"
        ) from error


def _step(job_id: str, index: int, command: Command, protocol: ProtocolDefinition) -> ProtocolStep:
    declared = protocol.steps[index]
    own = payload_of(command, declared.step_id)
    kept = None if own is command.payload else msgspec.json.encode(own).decode()
    step_type = declared.step_type or declared.step_id
    return ProtocolStep(
        job_id, declared.step_id, index, step_type, declared.service, STEP.start.value, 0, 1, kept
    )


def payload_of(command: Command, step_id: str) -> object:
    """Return what a step is given: its own part of the payload, else all of it.

    >>> command = Command("t", "r", "in", "out", {"steps": {"ocr": 1}}, "v1")
    >>> payload_of(command, "ocr"), payload_of(command, "embed")
    (1, {'steps': {'ocr': 1}})
    """
    parts = command.payload.get("steps")
    return parts[step_id] if isinstance(parts, dict) and step_id in parts else command.payload
