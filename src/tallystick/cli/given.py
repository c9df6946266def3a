"""JSON that a user gives on the command line or on stdin, read strictly."""

from __future__ import annotations

import sys
from typing import Final

from tallystick.core.json_forms.strict_json import Json, decode_strict
from tallystick.core.limits import PAYLOAD_BYTES_MAX
from tallystick.errors import BadJson

_STDIN: Final = "-"


def given_json(text: str, advice: str = "") -> Json:
    """Return the value that a word of the command line stands for; `-` is whatever stdin holds.

    A word that is no JSON was often meant as text, so the error shows how to write that.
    """
    if text == _STDIN:
        try:
            data = sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1)
        except OSError as error:
            raise BadJson(f"stdin cannot be read: {error.strerror or error}") from None
        if not data.strip():
            raise BadJson("there is nothing on stdin; give it JSON, or give the JSON instead of -")
        return decode_strict(data)
    try:
        return decode_strict(text.encode("utf-8", "surrogateescape"))
    except BadJson as error:
        if text[:1] in ("{", "[", '"'):
            raise
        raise BadJson(
            f"{error.message}; text needs quotes of its own ('\"yes\"'){advice}", **error.fields
        ) from None
