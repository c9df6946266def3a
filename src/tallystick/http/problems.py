"""Errors as answers: problem details with the code and the status that the error carries."""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from starlette.responses import Response

from tallystick.errors import NotKnown, TallyError, TooManyInFlight

_log = logging.getLogger("tallystick.http")
_encode: Final = msgspec.json.Encoder(enc_hook=str).encode
_TYPE: Final = "urn:tallystick:error:"
_OWN: Final = frozenset({"type", "title", "status", "code", "detail"})
_HEADERS: Final[dict[type[TallyError], dict[str, str]]] = {
    NotKnown: {"WWW-Authenticate": "Bearer"},
    TooManyInFlight: {"Retry-After": "1"},
}


def problem(error: BaseException, headers: dict[str, str] | None = None) -> Response:
    """Return the answer for an error; of one that is ours to mend nothing is shown but its code."""
    if not isinstance(error, TallyError):
        _log.error("a request failed: %s", error, exc_info=error, extra={"action": "http.failed"})
        error = TallyError("")
    status = error.http_status
    title = (type(error).__doc__ or error.code).splitlines()[0]
    said: dict[str, object] = {
        "type": f"{_TYPE}{error.code}",
        "title": title,
        "status": status,
        "code": error.code,
    }
    if status < 500:
        said["detail"] = error.message
        said |= {name: value for name, value in error.fields.items() if name not in _OWN}
    else:
        _log.warning("a request ended with %s: %s", error.code, error, extra={"action": "http.refused"})
    return Response(
        _encode(said),
        status,
        {**_HEADERS.get(type(error), {}), **(headers or {})},
        media_type="application/problem+json",
    )
