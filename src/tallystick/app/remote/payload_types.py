"""Payloads of protocol steps by their declared types: checked by the rules of all values of the program."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from tallystick.app.values.codec import Codec, encode
from tallystick.errors import BadValue

_PATH: Final = re.compile(r" - at `\$(?P<path>[^`]*)`$")


def type_check(step_id: str, annotation: Any) -> Callable[[object], None]:  # noqa: ANN401 (any type that Codec knows)
    """Return what refuses payloads of a step that are not of a type; the error names the member inside."""
    what = f"the payload of step {step_id}"
    codec = Codec(annotation, what)

    def check(payload: object) -> None:
        text = encode(payload, what)
        try:
            codec.decode(text, what)
        except BadValue as error:
            inner, says = _told(error.__cause__ or error)
            raise BadValue(
                f"{what} cannot be accepted: {says}", path=f"payload.steps.{step_id}{inner}", what="command"
            ) from error

    return check


def _told(error: BaseException) -> tuple[str, str]:
    """Return where in the data an error is, and what it says; of many that a model finds, the first."""
    found = _PATH.search(str(error))
    path, says = (found["path"], str(error)[: found.start()]) if found else ("", str(error))
    # What pydantic raises has a list of errors; inside other types it is the cause.
    listed = getattr(error, "errors", None) or getattr(error.__cause__, "errors", None)
    if listed is not None:
        first = listed()[0]
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
        path, says = path + "".join(steps), first["msg"]
    return path, says
