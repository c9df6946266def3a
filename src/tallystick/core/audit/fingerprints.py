"""Fingerprints: what a fact says about values that stand in rows beside it, so that no row changes unseen.

A fact is chained and a row is not. So the fact of a birth carries the fingerprint of what was submitted, the
fact of an end that of result and error, and the facts of a protocol job those of its rows. `tally verify`
makes them again from the rows. A fact without one is of an older form, and its values are not judged.

A fingerprint is the number of its form, a colon, and the SHA-256 of the values as a JSON array in UTF-8
without spaces. What a form hashes never changes, because what was written must verify for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from operator import attrgetter
from typing import Final

import msgspec

from tallystick.core.effects.rows import EffectRow
from tallystick.core.pictures import Activity, Place
from tallystick.core.values import NewJob

FORM: Final = 1
"""The form in which fingerprints are made now."""

BORN: Final = "born"
"""Where the first fact of a job says what was submitted."""

ENDED: Final = "ended"
"""Where the last fact of a job says what came of it."""

AT_BIRTH: Final = "at_birth"
"""Where the fact of a claim says that the job was born with it."""

DUE_IN: Final = "in"
"""Where a fact says how many milliseconds later the job is due."""

WAS: Final = "was"
TURNED: Final = "payload"
"""Where the fact of a turn says what the turn was given, and what the next one is given."""

INTENDED: Final = "asks"
"""Where the fact of an intent says what an effect is called with, and by which rules."""

INTENDED_AT: Final = "when"
"""Where the fact of an intent says when it was written, by the clock of the store, as its rows do."""

DROPPED: Final = "dropped"
"""Where the fact of an end or a turn says what was open and is dropped."""

_PREFIX: Final = f"{FORM}:"
_NO_PRINTS: Final[Mapping[Place, str]] = {}
_to_json: Final = msgspec.json.Encoder().encode
_COUNTS: Final = Activity._fields.index("semaphore")
# What a birth of the first form says, beside its payload and the time that it was given; never another list.
_FIRST: Final = (
    *("tenant_id", "kind", "handler", "version", "queue", "priority", "options", "request_type"),
    *("input_ref", "output_ref", "schema_version", "idempotency_key", "idempotency_hash", "canon_version"),
    *("correlation_id", "traceparent", "tags", "parent_job_id", "detached", "hooks"),
)
_first: Final = attrgetter(*_FIRST)
# The identifier is hashed with every fact; instants are by the clock of the submitting process.
_ELSEWHERE: Final = {"job_id", "payload", "ready_at", "deadline_at", "created_at", "limit_key"}
# Columns that came later, each said by its name where it has a value: what was written before verifies on.
_LATER: Final = tuple(name for name in NewJob._fields if name not in {*_FIRST, *_ELSEWHERE})


def fingerprint(*values: object) -> str:
    """Return the fingerprint of these values.

    >>> fingerprint("42", None)[:14]
    '1:07a8c416933b'
    """
    return _PREFIX + sha256(_to_json(values)).hexdigest()


def is_known(said: object) -> bool:
    """Tell whether a fingerprint is of a form that can be made again here."""
    return isinstance(said, str) and said.startswith(_PREFIX)


def of_birth(job: NewJob, step: str | None = None, given: str | None = None) -> str:
    """Return the fingerprint of a job as it is born, in a group of its parent if `step` names one.

    `given` is the fingerprint of the payload with which it was born, if it has another one now.

    Its instants are by the clock of the submitting process, and its row has that of the store: what stays is
    the time from birth to deadline.
    """
    return _born(given or fingerprint(job.payload), _shared(job, step))


def _shared(job: NewJob, step: str | None) -> bytes:
    """Return how the values of a birth go on behind its payload; jobs that differ in it alone share this."""
    # Jobs were born before there were keys of limits: a job without one has no field for it.
    limited = () if job.limit_key is None else (job.limit_key,)
    return _to_json((_time_given(job), *_first(job), step, *limited, *_later(job)))[1:]


def _later(job: NewJob) -> list[tuple[str, object]]:
    return [(name, value) for name in _LATER if (value := getattr(job, name)) is not None]


def _time_given(job: NewJob) -> int | None:
    return None if job.deadline_at is None else job.deadline_at - job.created_at


def _born(given: str, shared: bytes) -> str:
    return _PREFIX + sha256(b'["%b",%b' % (given.encode(), shared)).hexdigest()


def birth_text(job: NewJob) -> str:
    """Return what the fact of a submission says."""
    return _TEXT % (of_birth(job), job.ready_at - job.created_at)


def births(jobs: Iterable[NewJob], step: str) -> Iterator[str]:
    """Give what the facts of submissions say, one by one; most of a group differ in their payloads alone."""
    like: tuple[object, ...] = ()
    shared = b""
    for job in jobs:
        this = (_time_given(job), _first(job), job.limit_key, _later(job))
        if this != like:
            like, shared = this, _shared(job, step)
        yield _TEXT % (_born(fingerprint(job.payload), shared), job.ready_at - job.created_at)


def birth_texts(like: NewJob, payloads: Iterable[str]) -> list[str]:
    """Return what the facts of submissions say that differ in their payloads alone."""
    shared, due_in = _shared(like, None), like.ready_at - like.created_at
    return [_TEXT % (_born(fingerprint(payload), shared), due_in) for payload in payloads]


_TEXT: Final = f'{{"job":"QUEUED","{BORN}":"%s","{DUE_IN}":%d}}'


def of_end(
    result: str | None = None,
    error: str | None = None,
    error_code: str | None = None,
    error_message: str | None = None,
) -> str:
    """Return the fingerprint of what came of a job."""
    return fingerprint(result, error, error_code, error_message)


def of_dropped(activities: Iterable[Activity], prints: Mapping[Place, str] = _NO_PRINTS) -> str:
    """Return the fingerprint of what is dropped; digits may still move, and are not in it.

    `prints` are the fingerprints of remote steps, by their places.
    """
    return fingerprint(
        *sorted(
            (*one.place, one.kind, one.attempt, *one[_COUNTS:], *_print_of(one, prints)) for one in activities
        )
    )


def _print_of(activity: Activity, prints: Mapping[Place, str]) -> tuple[str | None, ...]:
    return (prints.get(activity.place),) if activity.kind == "remote" else ()


def of_group(threshold: int | None, mode: str | None) -> str:
    """Return the fingerprint of when a group is closed, which the fact of its end carries."""
    return fingerprint(threshold, mode)


def of_intent(arguments: str, options: str) -> str:
    """Return the fingerprint of what an effect is called with, and by which rules."""
    return fingerprint(arguments, options)


def of_effect(row: EffectRow) -> str:
    """Return the fingerprint of the row of a key whose effect is over; how often it was written is left out.

    The message that tells what came of an effect carries it, and so does the fact of the step that takes it.
    """
    return fingerprint(*row._replace(rev=0))
