"""Why a job stands where it stands: one sentence that is true of its rows, and what a person can do."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from tallystick.app.asking.limits_why import is_due, limit_sentence
from tallystick.app.asking.remote_why import late_sentence, remote_sentence, workflow_sentence
from tallystick.app.asking.sentence import Sentence, Why, clock_text
from tallystick.app.asking.standing import Position, Stand, stand_of
from tallystick.core.audit.book import AttemptRow, Book
from tallystick.core.lifecycles import ATTEMPT, AttemptState, JobState
from tallystick.core.pictures import Lease, Now
from tallystick.core.verbs.asking import DEADLINE
from tallystick.core.verbs.holds import Hold
from tallystick.store.api import Group, JobRow, OpenWait, Queues, Store, StoredEvent
from tallystick.store.inspection import Inspection

_WAITS_SHOWN: Final = 3


class Looked(NamedTuple):
    """Everything that a sentence is made of, as it was read."""

    row: JobRow
    book: Book
    attempt: AttemptRow | None
    lease: Lease | None
    # By the wall clock when the lease ends or has ended; None if that cannot be known.
    lease_until: int | None
    waits: list[OpenWait]
    last: StoredEvent | None
    known: Collection[tuple[str, str]] | None


def explain(
    store: Store,
    row: JobRow,
    now: int,
    known: Collection[tuple[str, str]] | None = None,
) -> Why:
    """Say why a job stands where it stands, and about a child that it waits for, as of one instant.

    `known` are the workflows and versions that the asking program declares.
    """
    why = store.inspect().at_once(
        lambda inspection: _explain(inspection, inspection.job(row.job_id) or row, now, known, deep=True)
    )
    queue = store.queue(row.queue) if isinstance(store, Queues) and is_due(row, now) else None
    if queue is None or not isinstance(store, Queues):
        return why
    return why.going_on(limit_sentence(row, queue, store.taken_slots(row.queue)))


def _explain(
    inspection: Inspection,
    row: JobRow,
    now: int,
    known: Collection[tuple[str, str]] | None,
    *,
    deep: bool,
) -> Why:
    looked = _look(inspection, row, now, known)
    if looked is None:
        return Why.of(_ended(row))
    stand = stand_of(_position(looked), Now(now))
    told = _remote(inspection, row) if stand is Stand.REMOTE else SENTENCES[stand](looked)
    child = _child(inspection, looked, now, known) if deep and stand is Stand.WAITING else None
    text = told.text if child is None else f"{told.text}; the child {child[0]}: {child[1]}"
    if stand in _ASKS and any(wait.kind == "remote" for wait in looked.waits):
        steps = inspection.open_remotes(row.job_id)
        text += f"; {workflow_sentence(steps, inspection.directive, clock_text)}" if steps else ""
    text += late_sentence(inspection, looked.row, clock_text)
    if looked.row.deadline_at is not None and stand in _HAVE_TIME:
        text += f"; it is cancelled at {clock_text(looked.row.deadline_at)} if it has not ended by then"
    return Why.of(told._replace(text=text), None if child is None else child[1])


def _look(
    inspection: Inspection, row: JobRow, now: int, known: Collection[tuple[str, str]] | None
) -> Looked | None:
    """Read what a sentence needs; None for a job that has ended, of which the row says all."""
    book = None if row.completed_at is not None else inspection.book(row.job_id)
    if book is None:
        return None
    attempts = inspection.attempts(row.job_id)
    newest = attempts[-1] if attempts and AttemptState(attempts[-1].status) not in ATTEMPT.final else None
    lease, until = None, None
    if newest is not None:
        epoch, instant = inspection.lease_clock()
        left = newest.lease_expires_at - instant if newest.lease_epoch == epoch else None
        lease = Lease(newest.attempt, newest.lease_id, newest.status, (left or 0) > 0, newest.guid)
        until = None if left is None else now + left
    waits = inspection.open_waits(row.job_id, limit=_WAITS_SHOWN + 1)
    return Looked(row, book, newest, lease, until, waits, inspection.newest_event(row.job_id), known)


def _position(looked: Looked) -> Position:
    row, book = looked.row, looked.book
    is_remote = book.attempt == 0 and book.start_acked_at is not None
    about = (book.state, book.attempt, row.ready_at, book.hold, row.deadline_at, looked.lease)
    return Position(*about, bool(looked.waits), is_remote)


def _ended(row: JobRow) -> Sentence:
    at = clock_text(row.completed_at)
    if row.state == JobState.SUCCEEDED:
        return Sentence(f"it succeeded at {at}", row.completed_at)
    if row.state == JobState.CANCELLED:
        because = ": its deadline has passed" if row.error_code == DEADLINE else ""
        return Sentence(f"it was cancelled at {at}{because}", row.completed_at)
    replaced = f"; {row.retried_as} has taken its place" if row.retried_as is not None else ""
    actions = () if replaced else (f"tally retry {row.job_id}", f"tally history {row.job_id}")
    return Sentence(
        f"it failed at {at} with {row.error_code}: {row.error_message}{replaced}",
        row.completed_at,
        None,
        actions,
    )


def _queued(looked: Looked) -> Sentence:
    row = looked.row
    handler = f"{row.handler} {row.version}".rstrip()
    unknown = looked.known is not None and (row.handler, row.version) not in looked.known
    here = f"; this program does not know {handler}" if unknown else ""
    since = clock_text(row.ready_at)
    return Sentence(
        f"it has waited since {since} for a worker on queue {row.queue} that knows {handler}{here}",
        row.ready_at,
        None,
        (f"tally work APP --queues {row.queue}", f"tally cancel {row.job_id}"),
    )


def _not_due(looked: Looked) -> Sentence:
    row = looked.row
    text = f"it is not due before {clock_text(row.ready_at)}"
    return Sentence(text, row.created_at, row.ready_at, (f"tally cancel {row.job_id}",))


def _due(looked: Looked) -> Sentence:
    row = looked.row
    return Sentence(
        f"it has been ready since {clock_text(row.ready_at)} and waits for a worker on queue {row.queue}",
        row.ready_at,
        None,
        (f"tally work APP --queues {row.queue}",),
    )


def _backing_off(looked: Looked) -> Sentence:
    row = looked.row
    error = _error(looked.last) if looked.last is not None and looked.last.type == "release" else ""
    return Sentence(
        f"it failed{error} and is tried again at {clock_text(row.ready_at)}",
        row.updated_at,
        row.ready_at,
        (f"tally cancel {row.job_id}",),
    )


def _running(looked: Looked) -> Sentence:
    began, row = _began(looked), looked.row
    doing = ""
    if looked.last is not None and looked.last.type == "try":
        said = msgspec.json.decode(looked.last.payload)
        again = looked.last.at + int(said.get("delay_ms") or 0)
        doing = (
            f"; step {said.get('step')} failed{_error(looked.last)} and is tried again at {clock_text(again)}"
        )
    return Sentence(
        f"it has been running since {clock_text(began)} in attempt {row.attempt}, on worker "
        f"{_owner(looked)}, whose lease holds until {clock_text(looked.lease_until)}{doing}",
        began,
        looked.lease_until,
        (f"tally pause {row.job_id}", f"tally cancel {row.job_id}"),
    )


def _lost(looked: Looked) -> Sentence:
    until = looked.lease_until
    ended = "before this machine was started" if until is None else f"at {clock_text(until)}"
    return Sentence(
        f"worker {_owner(looked)} was lost with attempt {looked.row.attempt}: its lease ended {ended}, and "
        "the next sweep of a worker takes the job back",
        until,
        None,
        ("tally work APP", "tally doctor"),
    )


def _committed(looked: Looked) -> Sentence:
    live = looked.lease is not None and looked.lease.live
    who = f"worker {_owner(looked)} writes its end" if live else "the next sweep of a worker finishes it"
    return Sentence(
        f"its work is committed in attempt {looked.row.attempt}: {who}, and nothing is called again",
        _began(looked),
        looked.lease_until,
        () if live else ("tally work APP",),
    )


def _asked(looked: Looked) -> str:
    row = looked.row
    because = ", because its deadline has passed," if row.error_code == DEADLINE else ""
    return f"it was asked to end at {clock_text(row.updated_at)}{because}"


def _cleaning_up(looked: Looked) -> Sentence:
    row, until = looked.row, looked.book.cancel_at
    return Sentence(
        f"{_asked(looked)} and cleans up; it is ended at {clock_text(until)} if it has not by then",
        row.updated_at,
        until,
        (f"tally cancel {row.job_id} --grace 0",),
    )


def _ending(looked: Looked) -> Sentence:
    return Sentence(
        f"{_asked(looked)}; no worker runs it, and the next sweep of a worker ends it",
        looked.row.updated_at,
        looked.book.cancel_at,
        ("tally work APP",),
    )


def _to_clean_up(looked: Looked) -> Sentence:
    row, until = looked.row, looked.book.cancel_at
    return Sentence(
        f"{_asked(looked)}, and waits for a worker on queue {row.queue} to clean up; "
        f"it is ended at {clock_text(until)} if it has not by then",
        row.updated_at,
        until,
        (f"tally work APP --queues {row.queue}",),
    )


def _held(looked: Looked) -> Sentence:
    row = looked.row
    return Sentence(
        f"it has been held ({row.hold}) since {clock_text(row.updated_at)}: {row.hold_reason}; "
        f"{_REMEDIES[Hold(row.hold or '')]}",
        row.updated_at,
        None,
        (f"tally resume {row.job_id}", f"tally cancel {row.job_id}"),
    )


def _stopping(looked: Looked) -> Sentence:
    row = looked.row
    return Sentence(
        f"it has been held ({row.hold}) since {clock_text(row.updated_at)}: {row.hold_reason}; "
        f"it runs on worker {_owner(looked)} and stops at its next call",
        row.updated_at,
        None,
        (f"tally resume {row.job_id}",),
    )


def _late(looked: Looked) -> Sentence:
    at = looked.row.deadline_at
    text = f"its deadline passed at {clock_text(at)}, and the next sweep of a worker cancels it"
    return Sentence(text, at, None, ("tally work APP",))


def _waiting(looked: Looked) -> Sentence:
    row, waits = looked.row, looked.waits
    named = [_awaited(wait) for wait in waits[:_WAITS_SHOWN]]
    more = " and for more" if len(waits) > _WAITS_SHOWN else ""
    since = min(wait.since for wait in waits)
    ends = [wait.until for wait in waits if wait.until is not None]
    sends = tuple(f"tally send {row.job_id} {wait.name} VALUE" for wait in waits if wait.kind == "wait")
    until = min(ends) if ends else None
    return Sentence(
        f"it has waited since {clock_text(since)} for {' and '.join(named)}{more}",
        since,
        until,
        (*sends[:_WAITS_SHOWN], f"tally cancel {row.job_id}"),
    )


def _awaited(wait: OpenWait) -> str:
    until = "" if wait.until is None else f" until {clock_text(wait.until)}"
    name = wait.name if wait.occurrence == 1 else f"{wait.name}#{wait.occurrence}"
    match wait.kind:
        case "wait":
            return f"the signal {name}{until}"
        case "sleep":
            return f"the end of {name}{until}"
        case "group":
            open_children = (wait.semaphore or 0) - (wait.threshold or 0)
            return f"{open_children} more {'child' if open_children == 1 else 'children'} of {name} to end"
        case _:
            return f"the {wait.kind} {name}{until}"


def _nowhere(looked: Looked) -> Sentence:
    row = looked.row
    return Sentence(
        "nothing will move it, so its books are wrong: verify them",
        row.updated_at,
        None,
        (f"tally verify --job {row.job_id}", "tally doctor"),
    )


def _remote(inspection: Inspection, row: JobRow) -> Sentence:
    picture = inspection.protocol(row.job_id)
    if picture is None:
        return Sentence("it is between two states; ask again", row.updated_at)
    text, until = remote_sentence(picture, clock_text)
    return Sentence(
        text, row.updated_at, until, (f"tally cancel {row.job_id}", f"tally history {row.job_id}")
    )


def _child(
    inspection: Inspection, looked: Looked, now: int, known: Collection[tuple[str, str]] | None
) -> tuple[str, Why] | None:
    """Return the first child that has not ended of a group that the job waits for, and its own why."""
    for wait in looked.waits:
        if wait.kind == "group":
            step = str(Group(wait.dimension, wait.name, wait.occurrence))
            child_id = inspection.open_child(looked.row.job_id, step)
            row = None if child_id is None else inspection.job(child_id)
            if row is not None:
                return row.job_id, _explain(inspection, row, now, known, deep=False)
    return None


def _began(looked: Looked) -> int | None:
    return None if looked.attempt is None else looked.attempt.started_at


def _owner(looked: Looked) -> str:
    return "?" if looked.attempt is None else looked.attempt.lease_owner[:12]


def _error(fact: StoredEvent | None) -> str:
    error = None if fact is None else msgspec.json.decode(fact.payload).get("error")
    return f" ({error.get('type')}: {error.get('message')})" if isinstance(error, dict) else ""


_REMEDIES: Final = {
    Hold.PAUSED: "resume it",
    Hold.IN_DOUBT: "say whether its effect has happened",
    Hold.MISMATCH: "put the code back or fork the job, then resume it",
    Hold.RESTORED: "look whether what it did is still true, then resume it",
    Hold.SUSPEND_SWALLOWED: "let the workflow pass BaseException at a wait, then resume it",
    Hold.REFUSED: "see tally doctor, then resume it",
}
SENTENCES: Final = {
    Stand.COMMITTED: _committed,
    Stand.CLEANING_UP: _cleaning_up,
    Stand.STOPPING: _stopping,
    Stand.RUNNING: _running,
    Stand.LOST: _lost,
    Stand.ENDING: _ending,
    Stand.TO_CLEAN_UP: _to_clean_up,
    Stand.HELD: _held,
    Stand.LATE: _late,
    Stand.QUEUED: _queued,
    Stand.NOT_DUE: _not_due,
    Stand.DUE: _due,
    Stand.BACKING_OFF: _backing_off,
    Stand.WAITING: _waiting,
    Stand.NOWHERE: _nowhere,
}
# Where the remote steps of a workflow tell more than their names.
_ASKS: Final = frozenset({Stand.WAITING, Stand.ENDING})
_HAVE_TIME: Final = frozenset(Stand) - {
    *(Stand.CLEANING_UP, Stand.ENDING, Stand.TO_CLEAN_UP),
    *(Stand.LATE, Stand.COMMITTED),
}
