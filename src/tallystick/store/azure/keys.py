"""Names of tables and keys of rows: legal for the service, and never the same for two different things.

The service allows no slashes, `#`, `?` and control characters in a key. Letters, digits and `-_. ` stay as
they are, every other byte of the UTF-8 is `!` and two digits, nothing at all is `!`, and `~` joins parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, TypeAlias
from zlib import crc32

from tallystick.core.remote.rows import OutboxRow

JOBS: Final = "Jobs"
STEPS: Final = "Steps"
OUTBOX: Final = "Outbox"
EVENTS: Final = "Events"
IDEMPOTENCY: Final = "Idempotency"
DUE: Final = "Due"
READY: Final = "Ready"
KEYS: Final = "Keys"
STALE: Final = "Stale"
TABLES: Final = (JOBS, STEPS, OUTBOX, EVENTS, IDEMPOTENCY, DUE, READY, KEYS, STALE)

HEAD: Final = "!head"
"""The row of a job among its steps: it sorts before all of them."""

DUE_PARTITIONS: Final = tuple(f"{each:02d}" for each in range(16))
# How the reader of a row that says when to look begins, and what sorts behind all relays.
RELAYS: Final = ">"
RELAYS_END: Final = "?"
WORKERS: Final = "<"
JOIN: Final = "~"
# The service takes keys of 1 KiB, which are 512 characters of UTF-16; two parts of this length fit.
_PART_CHARS_MAX: Final = 250
_OTHERS: Final = re.compile(rb"[^A-Za-z0-9\-_. ]")
_MONTH_FIRST: Final = 197001

Place: TypeAlias = tuple[str, str]
"""Partition and row."""


def encoded(text: str) -> str:
    """Return a text as a part of a key; one that would be too long is its hash.

    >>> encoded("acme"), encoded("a/b#c"), encoded(""), encoded("é")
    ('acme', 'a!2Fb!23c', '!', '!C3!A9')
    """
    if not text:
        return "!"
    plain = _OTHERS.sub(lambda found: b"!%02X" % found[0][0], text.encode()).decode()
    return plain if len(plain) <= _PART_CHARS_MAX else f"!!{sha256(text.encode()).hexdigest()}"


def key(*parts: str) -> str:
    """Return a key of several parts.

    >>> key("acme", "202609")
    'acme~202609'
    """
    return JOIN.join(map(encoded, parts))


def following(text: str) -> str:
    """Return the next key that there could be: none is between these two.

    >>> "j1" < following("j1") < "j1~"
    True
    """
    return f"{text} "


def month_of(instant: int) -> str:
    """Return the month of an instant, as the seed has it.

    >>> month_of(1_790_000_000_000)
    '202609'
    """
    return datetime.fromtimestamp(instant / 1000, UTC).strftime("%Y%m")


def months_back(month: str, count: int) -> Iterator[str]:
    """Yield a month and those before it.

    >>> list(months_back("202602", 3))
    ['202602', '202601', '202512']
    """
    year, number = divmod(int(month), 100)
    for _each in range(count):
        yield f"{year:04d}{number:02d}"
        year, number = (year, number - 1) if number > 1 else (year - 1, 12)
        if year * 100 + number < _MONTH_FIRST:
            return


def month_start(month: str) -> int:
    """Return the first instant of a month.

    >>> month_of(month_start("202609")), month_of(month_start("202609") - 1)
    ('202609', '202608')
    """
    return int(datetime(*divmod(int(month), 100), 1, tzinfo=UTC).timestamp() * 1000)


def month_end(month: str) -> int:
    """Return the first instant after a month.

    >>> month_of(month_end("202612"))
    '202701'
    """
    year, number = divmod(int(month), 100)
    return month_start(f"{year + number // 12:04d}{number % 12 + 1:02d}")


def instant_text(instant: int) -> str:
    """Return an instant so that texts sort as instants do.

    >>> instant_text(1_790_000_000_000)
    '001790000000000'
    """
    return f"{max(instant, 0):015d}"


def step_row(index: int, step_id: str) -> str:
    """Return the row of a step."""
    return f"{index:04d}{JOIN}{encoded(step_id)}"


def event_row(n: int) -> str:
    """Return the row of a fact."""
    return f"{n:010d}"


def outbox_row(job_id: str, index: int, attempt_no: int) -> str:
    """Return the row of a directive.

    >>> outbox_row("j1", 0, 2)
    'j1~0000~02'
    """
    return f"{encoded(job_id)}{JOIN}{index:04d}{JOIN}{attempt_no:02d}"


def reservation_place(tenant_id: str, scope: str, value: str) -> Place:
    """Return where a reservation is: `k` for a key, `h` for a hash of the content."""
    return encoded(tenant_id), f"{'k' if scope == 'key' else 'h'}{JOIN}{encoded(value)}"


def due_partition(job_id: str) -> str:
    """Return the partition in which it is noted when a sweep must look at a job."""
    return DUE_PARTITIONS[crc32(job_id.encode()) % len(DUE_PARTITIONS)]


def due_row(instant: int, job_id: str, n: int) -> str:
    """Return the row that says when to look at a job; `n` is the version of the job that wants it."""
    return f"{instant_text(instant)}{JOIN}{encoded(job_id)}{JOIN}{n:010d}"


def due_instant(row: str) -> int:
    """Return the instant of such a row.

    >>> due_instant(due_row(1_790_000_000_000, "j1", 3))
    1790000000000
    """
    return int(row.partition(JOIN)[0])


def ready_place(row: OutboxRow) -> Place:
    """Return where a directive waits for a remote worker that asks."""
    return key(row.service, row.lane), f"{instant_text(row.next_try_at)}{JOIN}{encoded(row.outbox_id)}"


def relay_to(via: str) -> str:
    """Return the reader of a row that says when to look, if the relays to an endpoint have to act."""
    return f"{RELAYS}{via}"


def given_to(worker: str) -> str:
    """Return the reader of such a row while a remote worker has to acknowledge a directive."""
    return f"{WORKERS}{worker}"
