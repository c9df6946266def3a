"""The one decoder for JSON that others wrote: requests, callbacks, arguments, stored rows, files.

It refuses what two readers could understand differently, and it never exhausts the stack.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from itertools import accumulate
from typing import Final, NoReturn, TypeAlias

from tallystick.core.limits import (
    JSON_DEPTH_MAX,
    JSON_INTEGER_DIGITS_MAX,
    PAYLOAD_BYTES_MAX,
    check_size,
    clip_text,
)
from tallystick.errors import BadJson

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What JSON text can say."""

_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_DEPTH_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NOT_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in _DEPTH_STEPS)


def decode_strict(data: bytes, *, bytes_max: int = PAYLOAD_BYTES_MAX, keys_max: int | None = None) -> Json:
    """Return the value of the JSON text, or raise `BadJson` or `PayloadTooLarge`.

    Refused are duplicate keys, a byte order mark, bytes that are not UTF-8, half surrogate pairs, NaN and
    infinities, numbers beyond any double, nesting beyond the limit, and with `keys_max`
    objects that have more keys.

    >>> decode_strict(b'{"order": 42}')
    {'order': 42}
    """
    check_size("JSON text", len(data), bytes_max)
    if data.startswith(b"\xef\xbb\xbf"):
        raise BadJson("the JSON text begins with a byte order mark; send UTF-8 without one", offset=0)
    if _depth(data) > JSON_DEPTH_MAX:
        raise BadJson(f"the JSON text is nested more than {JSON_DEPTH_MAX} levels deep; flatten it")
    try:
        value: Json = _decoder(keys_max).decode(data.decode())
        if b"\\ud" in data or b"\\uD" in data:
            # Only an escape can bring in half of a surrogate pair, and encoding is what finds it.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise BadJson(f"the JSON text is not UTF-8 at byte {error.start}", offset=error.start) from error
    except UnicodeEncodeError as error:
        raise BadJson("a string in the JSON text holds half of a surrogate pair") from error
    except json.JSONDecodeError as error:
        raise BadJson(f"this is not JSON: {error}", offset=error.pos) from error
    return value


def _depth(data: bytes) -> int:
    """Return how deeply the text nests arrays and objects, without recursion."""
    if data.count(b"[") + data.count(b"{") <= JSON_DEPTH_MAX:
        return 0
    brackets = _STRING.sub(b"", data).translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_DEPTH_STEPS.__getitem__, brackets)), default=0)


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members: dict[str, Json] = {}
    for key, value in pairs:
        if key in members:
            raise BadJson(f"an object has the key {key[:80]!a} more than once", key=clip_text(key[:80]))
        members[key] = value
    return members


def _integer(text: str) -> int:
    if len(text) > JSON_INTEGER_DIGITS_MAX:
        raise BadJson(f"an integer has more than {JSON_INTEGER_DIGITS_MAX} digits; send it as text")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadJson(f"the number {text[:40]} is larger than any double; send it as text")
    return number


def _constant(text: str) -> NoReturn:
    raise BadJson(f"JSON has no {text}; send null or text")


@cache
def _decoder(keys_max: int | None) -> json.JSONDecoder:
    """Return a decoder for objects of so many keys."""

    def few(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        if keys_max is not None and len(pairs) > keys_max:
            raise BadJson(f"an object has more than {keys_max:,} keys; send an array, or several requests")
        return _object(pairs)

    hook = _object if keys_max is None else few
    return json.JSONDecoder(
        object_pairs_hook=hook, parse_int=_integer, parse_float=_float, parse_constant=_constant
    )
