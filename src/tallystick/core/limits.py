"""Every limit that has a name, in one place; the unit is part of the name.

Nothing that comes from outside grows without bound: what meets a limit is refused or cut with an error
that names the limit. A limit is the largest value that is still accepted.
"""

from __future__ import annotations

import re
from typing import Final

from tallystick.errors import BadName, PayloadTooLarge

KIB: Final = 1024
MIB: Final = 1024 * KIB

# What one value may weigh.
PAYLOAD_BYTES_MAX: Final = 1 * MIB
RESULT_BYTES_MAX: Final = 1 * MIB
ERROR_TEXT_BYTES_MAX: Final = 2 * KIB
TRACEBACK_BYTES_MAX: Final = 16 * KIB

# How JSON may be shaped.
JSON_DEPTH_MAX: Final = 64
JSON_KEYS_MAX: Final = 1_000  # of one object in a request; what a program submits has no such limit
# The lowest limit that Python itself can be set to: below it no conversion between text and integer fails.
JSON_INTEGER_DIGITS_MAX: Final = 640

# How things may be called.
NAME_CHARS_MAX: Final = 128
KEY_CHARS_MAX: Final = 255
PRIORITY_BEST: Final = 0
PRIORITY_WORST: Final = 9
"""What a job may have as its priority; the schemas say the same."""

TAGS_MAX: Final = 16
VALUES_MAX: Final = 100
VALUE_BYTES_MAX: Final = 64 * KIB

# How much one transaction, sweep or call takes on.
CLAIM_BATCH_JOBS_MAX: Final = 100
AHEAD_SIGNALS_MAX: Final = 256
AHEAD_SIGNALS_BYTES_MAX: Final = 1 * MIB
FLUSH_BUNDLES_MAX: Final = 1_000
SWEEP_ROWS_MAX: Final = 500
PRUNE_BATCH_JOBS_MAX: Final = 200
TRIM_BATCH_RECORDS_MAX: Final = 2_000
PAGE_ROWS_MAX: Final = 1_000
GROUP_CHILDREN_MAX: Final = 100_000

# How many parents a job may have above it: what calls itself without an end is stopped here.
DEPTH_MAX: Final = 50

# How many messages the fifteen digits can count.
LEG2_ENTRIES_MAX: Final = 99_999_999

# From here on `doctor` recommends to cycle or fork; nothing is refused.
HISTORY_WARN_RECORDS: Final = 1_000

# How long something may take or be asked to take.
TX_MS_MAX: Final = 1_000
TRANSACTION_MS_MAX: Final = 5_000  # of app.transaction(), unless it is told otherwise
HELD_BACKOFF_MS_MAX: Final = 5_000  # a longer backoff gives the lease back and waits on a timer
HELD_WAIT_MS_MAX: Final = 200  # a wait that ends within this time does not unwind the workflow
DURATION_MS_MAX: Final = 100 * 365 * 86_400_000

# What comes over HTTP.
CALLBACK_BYTES_MAX: Final = 256 * KIB
HEADER_BYTES_MAX: Final = 16 * KIB
DIRECTIVES_MAX: Final = 64  # that a remote worker is given at once
REPORTS_MAX: Final = 256  # that it makes at once

_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_CHARS_MAX - 1}}}(?<!\.)")
_KEY: Final = re.compile(rf"[!-~]{{1,{KEY_CHARS_MAX}}}")
_NAME_RULE: Final = (
    f"1 to {NAME_CHARS_MAX} of the characters A-Z a-z 0-9 . _ -, "
    "beginning with a letter or digit and not ending in a dot"
)
_KEY_RULE: Final = f"1 to {KEY_CHARS_MAX} visible ASCII characters without spaces"
_EFFECT_KEY: Final = re.compile(rf"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{{1,{KEY_CHARS_MAX}}}")
_EFFECT_KEY_RULE: Final = f"1 to {KEY_CHARS_MAX} characters, none of which controls a terminal or ends a line"
_TEXT_RULE: Final = "a text without NUL and without half of a surrogate pair"


def check_name(kind: str, text: str) -> str:
    """Return the text if it can name a `kind` (tenant, queue, handler, step, ...), else raise `BadName`.

    Names are plain ASCII, so that no two of them look alike, and safe in paths, addresses and shells.

    >>> check_name("queue", "mail.eu-1")
    'mail.eu-1'
    """
    if not _fits(_NAME, text):
        raise _bad_name(kind, text, _NAME_RULE)
    return text


def check_key(kind: str, text: str) -> str:
    """Return the text if it can be a key that the user chose (idempotency, tag), else raise `BadName`.

    Keys may hold any visible ASCII character, because people build them from other names.

    >>> check_key("idempotency key", "charge:42/2024")
    'charge:42/2024'
    """
    if not _fits(_KEY, text):
        raise _bad_name(kind, text, _KEY_RULE)
    return text


def check_effect_key(kind: str, text: str) -> str:
    """Return the text if an effect can have it as its key, else raise `BadName`.

    It is made of arguments, which are data: names of people and streets, in any script, with spaces.

    >>> check_effect_key("key", "charge:Jörg Müller/7")
    'charge:Jörg Müller/7'
    """
    if not _fits(_EFFECT_KEY, text):
        raise _bad_name(kind, text, _EFFECT_KEY_RULE)
    return text


def check_storable(kind: str, text: str) -> str:
    """Return the text if a store can look for it, else raise `BadName`: nothing can be called that.

    >>> check_storable("job id", "01a1e109-dad7")
    '01a1e109-dad7'
    """
    if not is_storable(text):
        raise _bad_name(kind, text, _TEXT_RULE)
    return text


def is_storable(text: object) -> bool:
    """Tell whether this is a text that every store can hold."""
    try:
        return isinstance(text, str) and b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def check_size(kind: str, size_bytes: int, bytes_max: int) -> None:
    """Raise `PayloadTooLarge` if the size is above the limit."""
    if size_bytes > bytes_max:
        raise PayloadTooLarge(
            f"the {kind} has {size_bytes} bytes and may have {bytes_max}; "
            "keep large data elsewhere and pass a reference to it",
            kind=kind,
            size_bytes=size_bytes,
            bytes_max=bytes_max,
        )


def check_text(kind: str, text: str, bytes_max: int) -> str:
    """Return the text if what is written of it is within the limit, else raise `PayloadTooLarge`."""
    # No character takes more than four bytes, so most texts need not be written to be measured.
    if len(text) * 4 > bytes_max:
        check_size(kind, len(text.encode()), bytes_max)
    return text


def clip_text(text: str, bytes_max: int = ERROR_TEXT_BYTES_MAX) -> str:
    """Return the beginning of the text that fits, as text that every store can hold.

    Half of a surrogate pair, which no UTF-8 can carry, and NUL, which PostgreSQL does not take, become
    question marks.
    """
    return text.replace("\0", "?").encode("utf-8", "replace")[:bytes_max].decode("utf-8", "ignore")


def _fits(pattern: re.Pattern[str], text: str) -> bool:
    try:
        return pattern.fullmatch(text) is not None
    except TypeError:  # it is no text at all
        return False


def _bad_name(kind: str, given: object, rule: str) -> BadName:
    text = given if isinstance(given, str) else repr(given)
    shown = ascii(text if len(text) <= 80 else text[:80] + "...")
    if text is not given:
        shown = f"{shown[1:-1]}, which is no text,"
    says = f"{shown} cannot be {'an' if kind[0] in 'aeiou' else 'a'} {kind}: use {rule}"
    return BadName(says, kind=kind, text=clip_text(text[:80]), rule=rule)
