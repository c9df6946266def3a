"""What goes in and out as JSON: command, directive, ACK, RESULT, and the definition of a protocol.

Members that are not known here are allowed and ignored, so that a newer peer can talk to an older one; those
of a reference are kept. A mistake is told with the path of the member that is wrong.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, NAME_CHARS_MAX, clip_text
from tallystick.core.remote.policy import Mode
from tallystick.core.remote.refs import (
    AnyRef,
    Text,
    has_objects,
    keep_more,
    kept_ref,
    told_ref,
    told_refs,
)
from tallystick.core.remote.requests import StepAnswer, StepFence
from tallystick.errors import BadValue

T = TypeVar("T")
STEPS_MAX: Final = 99
"""How many steps a protocol may have."""

Name: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_CHARS_MAX - 1}}}$")
]
Version: TypeAlias = Literal["v1"]
VERSION: Final = "v1"
"""The version of the forms that is spoken here."""

# As specification 001 spells them.
_SPELT: Final = {"job_id": "jobId", "step_id": "stepId"}


class Command(msgspec.Struct, frozen=True, omit_defaults=True):
    """The wish that a protocol is run: what becomes a job."""

    tenant_id: Name
    request_type: Text
    input_ref: AnyRef
    output_ref: AnyRef
    payload: dict[str, object]
    schema_version: Version
    doc_id: Text | None = None
    mode: Mode | None = None
    idempotency_key: Text | None = None
    correlation_id: Text | None = None
    traceparent: Text | None = None
    protocol_id: Name | None = None


class Directive(msgspec.Struct, frozen=True, omit_defaults=True, rename=_SPELT):
    """What a remote worker is asked to do; `outbox_id` is the same for every copy of it."""

    job_id: str
    tenant_id: str
    step_id: str
    step_type: str
    attempt_no: int
    lease_id: str
    payload: object
    lane: int
    mode: Mode
    outbox_id: str
    schema_version: Version = "v1"
    protocol_id: str | None = None
    service: str | None = None
    input_ref: AnyRef | None = None
    workspace_ref: AnyRef | None = None
    output_ref: AnyRef | None = None
    # How long the work may take without a heartbeat.
    lease_ms: int | None = None
    callback_urls: dict[str, str] | None = None
    token: str | None = None
    correlation_id: str | None = None
    traceparent: str | None = None


class Ack(msgspec.Struct, frozen=True, omit_defaults=True, rename=_SPELT):
    """A remote worker has begun, or (as a heartbeat) is still at it."""

    job_id: Text
    step_id: Text
    attempt_no: Annotated[int, msgspec.Meta(ge=1)]
    lease_id: Text
    status: Literal["ACKED"] = "ACKED"
    timestamp: str | None = None

    @property
    def fence(self) -> StepFence:
        """Return what the report is accepted by."""
        return StepFence(self.job_id, self.step_id, self.attempt_no, self.lease_id)


class RemoteError(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong at a remote worker."""

    code: Text
    message: str
    details: dict[str, object] | None = None


class ResultReport(msgspec.Struct, frozen=True, omit_defaults=True, rename=_SPELT):
    """A remote worker has ended an attempt."""

    job_id: Text
    step_id: Text
    attempt_no: Annotated[int, msgspec.Meta(ge=1)]
    lease_id: Text
    status: Literal["SUCCEEDED", "FAILED"]
    timestamp: str | None = None
    failure_class: Literal["RETRYABLE", "NON_RETRYABLE"] | None = None
    error: RemoteError | None = None
    output_ref: AnyRef | None = None
    workspace_ref: AnyRef | None = None
    artifact_refs: list[AnyRef] | None = None
    value: object = None

    @property
    def fence(self) -> StepFence:
        """Return what the report is accepted by."""
        return StepFence(self.job_id, self.step_id, self.attempt_no, self.lease_id)

    def answer(self) -> StepAnswer:
        """Return it as it is kept; two copies that differ in their timestamps are one answer."""
        failed = self.error
        artifacts = None if self.artifact_refs is None else [told_ref(each) for each in self.artifact_refs]
        digested = msgspec.structs.replace(told_refs(self), timestamp=None)
        return StepAnswer(
            succeeded=self.status == "SUCCEEDED",
            digest=hashlib.sha256(_sorted(digested)).hexdigest(),
            retryable=self.failure_class == "RETRYABLE",
            error_code=None if failed is None else clip_text(failed.code, 200),
            error_message=None if failed is None else clip_text(failed.message, ERROR_TEXT_BYTES_MAX),
            error=None if failed is None else _written(failed),
            output_ref=kept_ref(self.output_ref),
            workspace_ref=kept_ref(self.workspace_ref),
            notes=None if artifacts is None else _written({"artifact_refs": artifacts}),
            value=None if self.value is None else _written(self.value),
        )


class StepDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of a protocol, as a file declares it; durations are as people write them (`30s`, `15m`)."""

    step_id: Name
    service: Name
    step_type: Name | None = None
    ack: str | int | float | None = None
    lease: str | int | float | None = None
    payload_schema: dict[str, object] | None = None


class ProtocolDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fixed list of remote steps, and the types of commands that it takes."""

    id: Name
    request_types: Annotated[list[Text], msgspec.Meta(min_length=1)]
    steps: Annotated[list[StepDefinition], msgspec.Meta(min_length=1, max_length=STEPS_MAX)]
    # How long a directive may wait for a remote worker that asks for it.
    start_within: str | int | float | None = None


FORMS: Final[dict[str, type[msgspec.Struct]]] = {
    "command": Command,
    "directive": Directive,
    "ack": Ack,
    "result": ResultReport,
    "protocol": ProtocolDefinition,
}
"""Everything that has a schema of its own."""

_sorted: Final = msgspec.json.Encoder(order="deterministic").encode
_PATH: Final = re.compile(r" - at `\$(?P<path>[^`]*)`$")


def read(kind: type[T], data: bytes | object, what: str, keys_max: int | None = None) -> T:
    """Return a form from JSON text or from what JSON said, or raise `BadValue` with the path.

    `keys_max` is how many keys an object of the text may have.

    >>> read(Ack, b'{"jobId": "j", "stepId": "s", "attempt_no": 0, "lease_id": "l"}', "ACK")
    Traceback (most recent call last):
    tallystick.errors.BadValue: attempt_no of this ACK cannot be accepted: Expected `int` >= 1
    """
    value = decode_strict(data, keys_max=keys_max) if isinstance(data, bytes) else data
    try:
        form = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = _PATH.search(str(error))
        path = found["path"].lstrip(".") if found else ""
        says = _PATH.sub("", str(error))
        raise BadValue(
            f"{path or 'the whole'} of this {what} cannot be accepted: {says}", path=path, what=what
        ) from error
    keep_more(form, value)
    _check(form, what)
    return form


def read_directive(data: bytes | msgspec.Raw) -> Directive:
    """Return a directive as a remote worker was given it."""
    form = msgspec.json.decode(data, type=Directive)
    if has_objects(form):
        keep_more(form, msgspec.json.decode(data))
    return form


def _check(form: object, what: str) -> None:
    """Refuse what no type can say: a failure without its class or error, two steps of one name."""
    if isinstance(form, ResultReport) and form.status == "FAILED":
        for path in ("failure_class", "error"):
            if getattr(form, path) is None:
                raise BadValue(
                    f"{path} of this {what} is missing: its status is FAILED", path=path, what=what
                )
    if isinstance(form, ProtocolDefinition):
        names = [step.step_id for step in form.steps]
        for place, name in enumerate(names):
            if name in names[:place]:
                path = f"steps[{place}].step_id"
                raise BadValue(
                    f"{path} of this {what} is {name!r}, as an earlier one is", path=path, what=what
                )


def _written(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _anything(kind: type) -> dict[str, object]:
    """Return the schema of what may be any JSON value."""
    if kind is not object:
        raise TypeError(f"{kind} has no schema")
    return {"description": "any JSON value"}


_NOT_NULL: Final = {"not": {"type": "null"}}
# What no type can say, and `_check` refuses.
_CONDITIONS: Final[dict[str, dict[str, object]]] = {
    ResultReport.__name__: {
        "if": {"properties": {"status": {"const": "FAILED"}}, "required": ["status"]},
        "then": {
            "properties": {"error": _NOT_NULL, "failure_class": _NOT_NULL},
            "required": ["error", "failure_class"],
        },
    }
}


def add_conditions(schemas: dict[str, dict[str, object]]) -> None:
    """Add to the schemas of types what depends on another member: a failure has its class and its error."""
    for name, condition in _CONDITIONS.items():
        if name in schemas:
            schemas[name] |= condition


def schema_of(name: str) -> dict[str, object]:
    """Return the JSON Schema of a form."""
    schema = msgspec.json.schema(FORMS[name], schema_hook=_anything)
    add_conditions(schema["$defs"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{name}.schema.json", **schema}
