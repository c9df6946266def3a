"""What programs put into their jobs, for people who asked to see it: secrets by their names are left out."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from tallystick.cli.render.wording import stored_value
from tallystick.core.json_forms.sealed import is_sealed

HIDDEN: Final = "•••"
PAYLOAD_BYTES: Final = 20_000
PAGE_BYTES: Final = 60_000
"""How much of what programs wrote one page shows; random text of this size leaves it below 100 KB in gzip."""
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


class Room:
    """How much more of what programs wrote a page has room for; what does not fit is cut, and says so."""

    def __init__(self, size: int = PAGE_BYTES) -> None:
        """Begin with an empty page."""
        self.left = size

    def fit(self, text: str) -> str:
        r"""Return as much of a text as there is room for.

        >>> room = Room(5)
        >>> room.fit("abc"), room.fit("defg")
        ('abc', 'de\n… 2 more characters are not shown')
        """
        packed = text.encode("utf-8", "replace")
        size = min(PAYLOAD_BYTES, self.left)
        if len(packed) <= size:
            self.left -= len(packed)
            return text
        begins = packed[:size].decode("utf-8", "ignore")
        self.left -= size
        return f"{begins}\n… {len(text) - len(begins):,} more characters are not shown"

    def pretty(self, text: str | None) -> str:
        """Return stored JSON for people: redacted, indented, and cut if there is no room for it."""
        if text is None:
            return ""
        if is_sealed(text):
            return "(sealed: this program has no codec that opens it)"
        return self.fit(indented(redacted(stored_value(text))))


def indented(value: object) -> str:
    """Return a value as JSON with a line for each member."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
