"""Canonical JSON and the content hash: equal contents have equal bytes, in every language.

The form is RFC 8785 (JCS) after null members were dropped from objects, at every depth; arrays keep their
nulls. Text is not normalised. JCS knows only doubles, hence one extension: an integer beyond 2**53 is
written with all its digits, and a float in [2**53, 10**21) is refused, because its JCS digits look like an
integer that need not be its value.

From 10**21 on JCS writes doubles with an exponent; an integer that is exactly such a double is written the
same way, any other integer in plain digits, which never contain an `e`. So each accepted number has one
form, and no two numbers share one.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final, NoReturn

import msgspec

from tallystick.core.limits import JSON_DEPTH_MAX, JSON_INTEGER_DIGITS_MAX, clip_text
from tallystick.errors import NotCanonical

CANON_OF_ROW: Final = 2
"""From this form on the row has what was hashed, so that the hash can be made again from it.

In form 1 a set stands in the payload in an order of its own, and the schema version in the column of the
workflow's. The same content has the same hash in both.
"""

CANON_VERSION: Final = CANON_OF_ROW
"""Stored beside every hash, so that a later form can tell its own hashes from these."""

CONTENT_FIELDS: Final = (
    "tenant_id",
    "request_type",
    "input_ref",
    "output_ref",
    "payload",
    "schema_version",
)
"""What makes two submissions the same submission."""

_EXACT_END: Final = 2**53
_EXPONENT_START: Final = 10**21
_INTEGER_END: Final = 10**JSON_INTEGER_DIGITS_MAX

# This encoder escapes text exactly as JCS does; its key order is that of JCS as long as keys are ASCII.
_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_PLAIN_SCALARS: Final = frozenset({str, bool, type(None)})


def canonical(value: object) -> bytes:
    """Return the canonical bytes of a JSON value, or raise `NotCanonical` with the path to the culprit.

    Accepted are dict with str keys, list, tuple (an array: JSON has no other), str, int, float, bool and
    None, but no subclasses: what an enum or a number of another library means is for its owner to say.

    >>> canonical({"b": 1.0, "a": [None, -0.0], "c": None})
    b'{"a":[null,0],"b":1}'
    """
    return _canonical(value, JSON_DEPTH_MAX)


def content_hash(content: object) -> str:
    """Return the SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical(content)).hexdigest()


def idempotency_hash(
    *,
    tenant_id: str,
    request_type: str,
    input_ref: object,
    output_ref: object,
    payload: object,
    schema_version: object,
) -> str:
    """Return the hash by which two submissions are the same submission."""
    values = (tenant_id, request_type, input_ref, output_ref, payload, schema_version)
    content = {name: value for name, value in zip(CONTENT_FIELDS, values, strict=True) if value is not None}
    # Each field may be as deep as a value may be; the object around them is ours.
    return hashlib.sha256(_canonical(content, JSON_DEPTH_MAX + 1)).hexdigest()


def _canonical(value: object, depth_max: int) -> bytes:
    if not _is_plain(value, depth_max):
        return _write_carefully(value, depth_max)
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # The text holds half of a surrogate pair; the careful writer says where.
        return _write_carefully(value, depth_max)


def _write_carefully(value: object, depth_max: int) -> bytes:
    writer = _Writer(depth_max)
    writer.write(value)
    return b"".join(writer.parts)


def _is_plain(value: object, depth_left: int) -> bool:
    """Tell whether the fast encoder is known to write this value in canonical form."""
    if type(value) in _PLAIN_SCALARS:
        return True
    if type(value) is int:
        return -_EXACT_END < value < _EXACT_END
    if type(value) is dict and depth_left:
        return _is_plain_object(value, depth_left - 1)
    if (type(value) is list or type(value) is tuple) and depth_left:
        return all(_is_plain(item, depth_left - 1) for item in value)
    return False


def _is_plain_object(members: dict[object, object], depth_left: int) -> bool:
    for key, member in members.items():
        # A null member has to be dropped, which the encoder does not do.
        if type(key) is not str or not key.isascii() or member is None:
            return False
        if type(member) not in _PLAIN_SCALARS and not _is_plain(member, depth_left):
            return False
    return True


class _Writer:
    """Writes any accepted value; the path to where it is tells the depth and names the culprit."""

    def __init__(self, depth_max: int) -> None:
        self.parts: list[bytes] = []
        self._path: list[object] = []
        self._depth_max = depth_max

    def write(self, value: object) -> None:
        """Append the canonical form of one value."""
        if type(value) is dict:
            self._write_object(value)
        elif type(value) is list or type(value) is tuple:
            self._write_array(value)
        elif value is None or type(value) is bool:
            self.parts.append(_encode(value))
        elif type(value) is str:
            self.parts.append(self._text(value))
        elif type(value) is int:
            self.parts.append(self._integer(value).encode())
        elif type(value) is float:
            self.parts.append(self._float(value).encode())
        else:
            self._refuse(
                f"JSON has no {type(value).__name__}; turn it into text, a number, an array or an object"
            )

    def _write_object(self, members: dict[object, object]) -> None:
        self._check_depth()
        self.parts.append(b"{")
        separator = b""
        for key in sorted(members, key=self._sort_key):
            member = members[key]
            if member is not None:
                self._path.append(key)
                self.parts += (separator, _encode(key), b":")
                self.write(member)
                self._path.pop()
                separator = b","
        self.parts.append(b"}")

    def _write_array(self, items: list[object] | tuple[object, ...]) -> None:
        self._check_depth()
        self.parts.append(b"[")
        for index, item in enumerate(items):
            if index:
                self.parts.append(b",")
            self._path.append(index)
            self.write(item)
            self._path.pop()
        self.parts.append(b"]")

    def _sort_key(self, key: object) -> bytes:
        if type(key) is not str:
            self._refuse(f"an object has a key of type {type(key).__name__}; keys must be text")
        try:
            return key.encode("utf-16-be")
        except UnicodeEncodeError:
            self._refuse("a key holds half of a surrogate pair, which UTF-8 cannot carry")

    def _text(self, text: str) -> bytes:
        try:
            return _encode(text)
        except UnicodeEncodeError:
            self._refuse("the text holds half of a surrogate pair, which UTF-8 cannot carry")

    def _integer(self, number: int) -> str:
        if -_EXPONENT_START < number < _EXPONENT_START:
            return str(number)
        if not -_INTEGER_END < number < _INTEGER_END:
            self._refuse(f"the integer has more than {JSON_INTEGER_DIGITS_MAX} digits; pass it as text")
        try:
            double = float(number)
        except OverflowError:
            return str(number)
        return _ecmascript(double) if double == number else str(number)

    def _float(self, number: float) -> str:
        if not math.isfinite(number):
            self._refuse(f"JSON has no {number}; use null or text")
        if _EXACT_END <= abs(number) < _EXPONENT_START:
            self._refuse(f"the float {number!r} is too large to be exact; pass an integer or text")
        return _ecmascript(number)

    def _check_depth(self) -> None:
        if len(self._path) >= self._depth_max:
            self._refuse(f"it is nested more than {self._depth_max} levels deep; flatten it")

    def _refuse(self, reason: str) -> NoReturn:
        path = clip_text("".join(f"/{segment}" for segment in self._path), 200)
        raise NotCanonical(f"{path or 'the value'} cannot be written: {reason}", path=path, reason=reason)


def _ecmascript(number: float) -> str:
    """Return the shortest text that reads back as this float, the way ECMAScript writes it.

    Python finds the same digits and only changes to exponents elsewhere. The refused range never comes here.
    """
    if number.is_integer() and abs(number) < _EXACT_END:
        return str(int(number))
    mantissa, marker, exponent_text = repr(number).partition("e")
    if not marker:
        return mantissa
    exponent = int(exponent_text)
    if exponent in (-5, -6):
        sign, digits = ("-", mantissa[1:]) if number < 0 else ("", mantissa)
        return f"{sign}0.{'0' * (-exponent - 1)}{digits.replace('.', '')}"
    return f"{mantissa}e{exponent:+d}"
