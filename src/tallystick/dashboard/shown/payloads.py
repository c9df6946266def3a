"""What programs put into their jobs, for people who asked to see it: secrets by their names are left out."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from tallystick.cli.render.wording import stored_value
from tallystick.core.json_forms.sealed import is_sealed

HIDDEN: Final = "•••"
SHOWN_CHARS: Final = 20_000
_SECRET: Final = re.compile(
    r"pass(word|wd|phrase)?|secret|token|api[-_]?key|authorization|cookie|credential|private[-_]?key|"
    r"\b(ssn|cvv|cvc|iban|pin)\b|card[-_]?number",
    re.IGNORECASE,
)
_DEPTH_MAX: Final = 64


def redacted(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 (whatever was stored)
    """Return a value in which members with the name of a secret are hidden.

    >>> redacted({"user": "ada", "api_key": "k1", "more": [{"Password": 1}]})
    {'user': 'ada', 'api_key': '•••', 'more': [{'Password': '•••'}]}
    """
    if depth > _DEPTH_MAX:
        return HIDDEN
    if isinstance(value, dict):
        return {
            name: HIDDEN if _SECRET.search(str(name)) else redacted(inner, depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [redacted(inner, depth + 1) for inner in value]
    return value


def pretty(text: str | None) -> str:
    """Return stored JSON for people: redacted, indented, and cut if it is very long."""
    if text is None:
        return ""
    if is_sealed(text):
        return "(sealed: this program has no codec that opens it)"
    return cut(indented(redacted(stored_value(text))))


def indented(value: object) -> str:
    """Return a value as JSON with a line for each member."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()


def cut(text: str) -> str:
    """Return the beginning of a text that is too long for a page, and say so."""
    if len(text) <= SHOWN_CHARS:
        return text
    return f"{text[:SHOWN_CHARS]}\n… {len(text) - SHOWN_CHARS:,} more characters; download the whole"
