"""Fresh keys: a fork that is to act again has keys of its own, which end with its identifier."""

from __future__ import annotations

from typing import Final

import msgspec

_OPTION: Final = "fresh_keys"


def with_fresh_keys(options: str, *, fresh: bool) -> str:
    """Return the options of a fork; it takes over all of its origin's but this one.

    >>> with_fresh_keys('{"attempts_max":3}', fresh=True)
    '{"attempts_max":3,"fresh_keys":true}'
    """
    if not fresh and _OPTION not in options:
        return options
    given: dict[str, object] = msgspec.json.decode(options)
    given.pop(_OPTION, None)
    return msgspec.json.encode({**given, _OPTION: True} if fresh else given).decode()


def key_for(key: str, options: str, job_id: str) -> str:
    """Return the key under which a job with these options acts.

    >>> key_for("charge:7", '{"fresh_keys":true}', "j2"), key_for("charge:7", "{}", "j2")
    ('charge:7:j2', 'charge:7')
    """
    return f"{key}:{job_id}" if _OPTION in options and msgspec.json.decode(options).get(_OPTION) else key
