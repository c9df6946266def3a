"""Protocols from a file: JSON or TOML, read and checked when the program starts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tallystick.core.durations import duration_ms
from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.core.remote.wire import ProtocolDefinition, StepDefinition, read
from tallystick.errors import BadInput, BadJson, BadValue, ExtraMissing, TallyError

PayloadCheck = Callable[[object], None]


def read_protocols(path: Path) -> list[ProtocolDefinition]:
    """Return the protocols of a file: one, or a list under `protocols`; what is wrong has its path."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", file=str(path)) from error
    said = _decoded(path, data)
    if not isinstance(said, dict) or "protocols" not in said:
        return [_definition(path, said, "")]
    listed = said["protocols"]
    if not isinstance(listed, list):
        raise BadValue(f"{path}: protocols is a list of protocols", path="protocols", file=str(path))
    return [_definition(path, each, f"protocols[{place}]") for place, each in enumerate(listed)]


def _decoded(path: Path, data: bytes) -> object:
    try:
        return tomllib.loads(data.decode()) if path.suffix == ".toml" else decode_strict(data)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, BadJson) as error:
        raise BadInput(f"{path} cannot be read: {error}", file=str(path)) from error


def _definition(path: Path, said: object, place: str) -> ProtocolDefinition:
    try:
        made = read(ProtocolDefinition, said, "protocol")
        for at, value in _durations(made):
            _check_duration(at, value)
    except BadValue as error:
        inner = error.fields.get("path") or ""
        where = ".".join(filter(None, (place, str(inner))))
        raise BadValue(f"{path}: {where}: {error.message}", path=where, file=str(path)) from error
    return made


def _durations(protocol: ProtocolDefinition) -> Iterator[tuple[str, str | float | None]]:
    for place, step in enumerate(protocol.steps):
        yield f"steps[{place}].ack", step.ack
        yield f"steps[{place}].lease", step.lease


def _check_duration(at: str, value: str | float | None) -> None:
    try:
        if value is not None and not duration_ms(value):
            raise BadInput("it has no time: give it more than nothing")
    except TallyError as error:
        raise BadValue(error.message, path=at) from error


def payload_check(step: StepDefinition) -> PayloadCheck | None:
    """Return what refuses payloads that do not fit the schema of a step; nothing is fetched for it."""
    if step.payload_schema is None:
        return None
    try:
        import jsonschema_rs  # noqa: PLC0415 (only files with schemas need it; an extra)
    except ImportError as error:
        if not ExtraMissing.explains(error, "jsonschema_rs"):
            raise
        raise ExtraMissing("payload_schema", "schema") from error
    try:
        validator = jsonschema_rs.validator_for(step.payload_schema, retriever=_refuse)
    except ValueError as error:
        raise BadValue(f"payload_schema of step {step.step_id}: {error}", path="payload_schema") from error

    def check(payload: object) -> None:
        for wrong in validator.iter_errors(msgspec.to_builtins(payload)):
            inner = "".join(f".{each}" for each in wrong.instance_path)
            raise BadValue(
                f"the payload of step {step.step_id} cannot be accepted: {wrong.message}",
                path=f"payload.steps.{step.step_id}{inner}",
                what="command",
            )

    return check


def _refuse(address: str) -> Any:  # noqa: ANN401 (it returns nothing)
    raise ValueError(f"a schema of a payload is whole: {address} is not fetched")
