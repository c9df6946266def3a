"""Sealed texts: what a program's own codec made of a text, as JSON that every part of the books can carry."""

from __future__ import annotations

import binascii
from typing import Final, TypeGuard

SEALED_BEGIN: Final = '{"$sealed":"'
_END: Final = '"}'

SEALED_WHY: Final = "give Tally(payload_codec=...) the codec and key by which it was stored"
"""What to do where something is still sealed."""


def is_sealed(text: object) -> TypeGuard[str]:
    """Tell whether a text was sealed.

    >>> is_sealed(sealed(b"secret")), is_sealed('{"a":1}'), is_sealed(None)
    (True, False, False)
    """
    return isinstance(text, str) and text.startswith(SEALED_BEGIN)


def sealed(token: bytes) -> str:
    """Return the text for what a codec has made.

    >>> sealed(b"secret")
    '{"$sealed":"c2VjcmV0"}'
    """
    return f"{SEALED_BEGIN}{binascii.b2a_base64(token, newline=False).decode()}{_END}"


def token_of(text: str) -> bytes:
    """Return what a codec had made; ValueError if it was changed.

    >>> token_of(sealed(b"secret"))
    b'secret'
    """
    if not text.endswith(_END):
        raise ValueError("a sealed text without its end")
    return binascii.a2b_base64(text[len(SEALED_BEGIN) : -len(_END)], strict_mode=True)
