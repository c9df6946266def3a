"""Bundles that read before they write, side by side: a number of round trips that does not grow with theirs.

They share one savepoint. If any of them is refused all are undone and each half is tried again, so that the
one is found in a few tries more, and the others are written as if it had not been there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tallystick.core.limits import is_storable
from tallystick.store.api import Bundle, EndAttempt, EndJob, Outcome
from tallystick.store.postgres.connection import Talk
from tallystick.store.postgres.refusing import REFUSING
from tallystick.store.postgres.rounds import cancelled_jobs, in_rounds, rounds_of, runs_once
from tallystick.store.postgres.statements import sql

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import Batch


def write_together(
    writing: Batch, batch: Sequence[Bundle], indexes: Sequence[int], outcomes: list[Outcome | BaseException]
) -> None:
    """Write these bundles of a batch and fill in their outcomes."""
    steady = [index for index in indexes if not runs_once(batch[index])]
    for members in rounds_of(batch, steady, _parents(writing, batch, steady)):
        for index, outcome in _halving(writing, batch, members).items():
            outcomes[index] = outcome
    for index in set(indexes) - set(steady):
        outcomes[index] = writing.alone(batch[index])


def _parents(writing: Batch, batch: Sequence[Bundle], indexes: Sequence[int]) -> dict[str, str]:
    cancelled = cancelled_jobs(batch, indexes)
    if not cancelled or len(indexes) == 1:
        return {}
    return dict(writing.rows("parents", (cancelled,)))


def _halving(
    writing: Batch, batch: Sequence[Bundle], members: Sequence[int]
) -> dict[int, Outcome | BaseException]:
    try:
        return dict(zip(members, _written(writing, [batch[index] for index in members]), strict=True))
    except REFUSING:
        writing.connection.execute(b"ROLLBACK TO rounds")
        if len(members) == 1:
            # Alone every guard is looked at before the next statement is sent: that says what was wrong.
            return {members[0]: writing.alone(batch[members[0]])}
    middle = len(members) // 2
    return _halving(writing, batch, members[:middle]) | _halving(writing, batch, members[middle:])


def _written(writing: Batch, bundles: Sequence[Bundle]) -> list[Outcome]:
    """Write bundles in rounds, or raise what refuses one of them; then nothing of theirs counts."""
    held = _hold(writing, bundles)
    finished: list[Batch] = []

    def verb(bundle: Bundle) -> Callable[[Talk], Outcome]:
        def run(talk: Talk) -> Outcome:
            part = writing.part(talk, held)
            try:
                outcome = part.sole(bundle)
            except BaseException:
                part.rewind()
                raise
            finished.append(part)
            return outcome

        return run

    try:
        outcomes = in_rounds(writing.connection, map(verb, bundles))
    except BaseException:
        for part in reversed(finished):
            part.rewind()
        raise
    for part in finished:
        writing.adopt(part)
    return outcomes


def _hold(writing: Batch, bundles: Iterable[Bundle]) -> frozenset[str]:
    """Take the rows of all jobs in hand, in their order, and read the time; a sweep takes its own."""
    jobs = sorted({job_id for bundle in bundles for job_id in _to_hold(bundle)})
    talk = writing.connection
    with talk.pipeline():
        talk.execute(b"SAVEPOINT rounds")
        if jobs:
            talk.execute(sql("lock_jobs"), (jobs,))
        now = writing.ask_wall()
    writing.take_wall(now)
    return frozenset(jobs)


def _to_hold(bundle: Bundle) -> Iterable[str]:
    for primitive in bundle:
        if isinstance(primitive, EndAttempt | EndJob) and primitive.expired:
            return
    for primitive in bundle:
        fence = getattr(primitive, "fence", None)
        job_id = fence.job_id if fence is not None else getattr(primitive, "job_id", None)
        # What no row can be called is refused when it is looked for, after the savepoint.
        if job_id is not None and is_storable(job_id):
            yield str(job_id)
