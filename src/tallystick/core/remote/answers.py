"""How a remote step or an effect of a workflow has ended, as its message says it and as its row keeps it.

The message of a step that succeeded carries its value; that of one that failed carries the error, in the form
in which the errors of all steps are kept.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from tallystick.core.remote.rows import ProtocolStep

WITHDRAWN: Final = "WITHDRAWN"
"""The code of a step whose directive was taken back before any remote worker had it."""


class Ended(NamedTuple):
    """What the row of a step keeps: a result, or an error."""

    result: str | None
    error: str | None


def answer_text(result: str | None, error: str | None, row: str | None = None) -> str:
    """Return what a message says that ends an effect; `row` is the fingerprint of its key.

    >>> answer_text('"receipt"', None, "1:ab"), answer_text(None, '{"code":"BROKEN"}')
    ('{"value":"receipt","row":"1:ab"}', '{"error":{"code":"BROKEN"}}')
    """
    name, text = ("value", result or "null") if error is None else ("error", error)
    return f'{{"{name}":{text}}}' if row is None else f'{{"{name}":{text},"row":"{row}"}}'


class _AnswerForm(msgspec.Struct):
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    row: str | None = None


class _ErrorForm(msgspec.Struct):
    """What a remote worker says about an error."""

    details: dict[str, msgspec.Raw] | None = None


def success(step: ProtocolStep) -> dict[str, object]:
    """Return what the message of a step says that has succeeded; artifacts are kept only there."""
    said: dict[str, object] = {"value": msgspec.Raw((step.result or "null").encode())}
    return said if step.notes is None else {**said, "notes": msgspec.Raw(step.notes.encode())}


def failure(step: ProtocolStep) -> dict[str, object]:
    """Return what the message of a step says that has failed: the worker's code is the type of its error."""
    code = step.last_error_code or WITHDRAWN
    message = step.last_error_message or "the job was asked to end before a remote worker had the directive"
    about: dict[str, object] = {"type": code, "message": message, "code": code, "tries": step.attempt_no}
    details = None if step.error is None else msgspec.json.decode(step.error, type=_ErrorForm).details
    return {"error": about if details is None else {**about, "fields": details}}


def ended(payload: str | None) -> Ended:
    """Return what a message says that ends a step.

    >>> ended('{"value":7}'), ended('{"error":{"code":"BROKEN"}}')
    (Ended(result='7', error=None), Ended(result=None, error='{"code":"BROKEN"}'))
    """
    said = msgspec.json.decode(payload or '{"value":null}', type=_AnswerForm)
    if isinstance(said.error, msgspec.Raw):
        return Ended(None, bytes(said.error).decode())
    assert isinstance(said.value, msgspec.Raw), "a step ends with a value or an error"
    return Ended(bytes(said.value).decode(), None)


def printed(payload: str | None) -> str | None:
    """Return the fingerprint that a message carries of the key of its effect; older ones carry none."""
    return msgspec.json.decode(payload or '{"value":null}', type=_AnswerForm).row
