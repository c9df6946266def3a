"""Why a job stands where it stands: one sentence that is true of its rows, and what a person can do."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from tallystick.app.asking.effects_why import (
    awaited_actions,
    awaited_text,
    doubts_actions,
    doubts_text,
    held_in_doubt,
    late_text,
    moves_at,
    rests_text,
)
from tallystick.app.asking.ending_why import cleaning_up, ending, ending_in_doubt, to_clean_up
from tallystick.app.asking.limits_why import is_due, limit_sentence
from tallystick.app.asking.looked import WAITS_SHOWN, Looked, look, open_effects
from tallystick.app.asking.remote_why import remote_sentence, workflow_sentence
from tallystick.app.asking.sentence import Sentence, Why, clock_text
from tallystick.app.asking.standing import Stand, stand_of
from tallystick.core.effects.rows import Phase
from tallystick.core.lifecycles import JobState
from tallystick.core.pictures import Now
from tallystick.core.verbs.asking import DEADLINE
from tallystick.core.verbs.holds import Hold
from tallystick.store.api import Group, JobRow, OpenWait, Queues, Store, StoredEvent
from tallystick.store.inspection import Inspection


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
    looked = look(inspection, row, now, known)
    if looked is None:
        return Why.of(_left_open(inspection, row, now, _ended(row)))
    stand = stand_of(looked.position, Now(now))
    told = _remote(inspection, row) if stand is Stand.REMOTE else SENTENCES[stand](looked)
    told = _with_effects(looked, stand, told)
    child = _child(inspection, looked, now, known) if deep and stand is Stand.WAITING else None
    text = told.text if child is None else f"{told.text}; the child {child[0]}: {child[1]}"
    if stand in _ASKS and any(wait.kind == "remote" for wait in looked.waits):
        steps = inspection.open_remotes(row.job_id)
        text += f"; {workflow_sentence(steps, inspection.directive, clock_text)}" if steps else ""
    text += late_text(inspection, row.job_id) if looked.outside.doubts else ""
    if looked.row.deadline_at is not None and stand in _HAVE_TIME:
        text += f"; it is cancelled at {clock_text(looked.row.deadline_at)} if it has not ended by then"
    return Why.of(told._replace(text=text), None if child is None else child[1])


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


def _left_open(inspection: Inspection, row: JobRow, now: int, told: Sentence) -> Sentence:
    """Return a sentence about the end of a job, and of effects that it has left open: it was forced."""
    own = [] if row.state == JobState.SUCCEEDED else open_effects(inspection, row.job_id)
    if not own:
        return told
    text = told.text + doubts_text(own, now) + late_text(inspection, row.job_id)
    return told._replace(text=text, actions=(*doubts_actions(own, row.state), *told.actions))


def _with_effects(looked: Looked, stand: Stand, told: Sentence) -> Sentence:
    """Return a sentence that goes on about the effects that the job has open, unless it tells of them."""
    row, (own, awaited), now = looked.row, looked.outside, looked.now
    if stand is Stand.ENDING_IN_DOUBT or (stand is Stand.HELD and row.hold == Hold.IN_DOUBT):
        return told
    if looked.lease is not None:
        # While a worker has the job an answer is refused, and a call that is under way is nothing to tell.
        doubted = [each for each in own if each.phase == Phase.IN_DOUBT]
        return told._replace(text=told.text + doubts_text(doubted, now))
    shown, keys = looked.outside.doubts, awaited if stand in (Stand.WAITING, Stand.HELD) else []
    rests = rests_text(own, now) if stand is Stand.WAITING else ""
    if not shown and not keys and not rests:
        return told
    text = told.text + doubts_text(shown, now) + rests + "".join(awaited_text(key, now) for key in keys)
    actions = [*doubts_actions(shown, row.state), *(each for key in keys for each in awaited_actions(key))]
    ends = [each for each in (told.until, *(moves_at(each, now) for each in shown)) if each is not None]
    until = min(ends) if ends and stand is Stand.WAITING else told.until
    return told._replace(text=text, until=until, actions=tuple(dict.fromkeys((*actions, *told.actions))))


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


def _held(looked: Looked) -> Sentence:
    row = looked.row
    if row.hold == Hold.IN_DOUBT:
        return held_in_doubt(row, looked.outside.doubts, looked.now)
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
    named = [_awaited(wait) for wait in waits[:WAITS_SHOWN]]
    more = " and for more" if len(waits) > WAITS_SHOWN else ""
    since = min(wait.since for wait in waits)
    ends = [wait.until for wait in waits if wait.until is not None]
    sends = tuple(f"tally send {row.job_id} {wait.name} VALUE" for wait in waits if wait.kind == "wait")
    ends += [] if row.ready_at is None else [row.ready_at]
    until = min(ends) if ends else None
    return Sentence(
        f"it has waited since {clock_text(since)} for {' and '.join(named)}{more}",
        since,
        until,
        (*sends[:WAITS_SHOWN], f"tally cancel {row.job_id}"),
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
    actions: tuple[str, ...] = (f"tally cancel {row.job_id}", f"tally history {row.job_id}")
    if row.hold is not None:
        text = f"it has been held ({row.hold}) since {clock_text(row.updated_at)}: {row.hold_reason}; {text}"
        actions = (f"tally resume {row.job_id}", *actions)
    return Sentence(text, row.updated_at, until, actions)


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
    Hold.MISMATCH: "put the code back or fork the job, then resume it",
    Hold.RESTORED: "look whether what it did is still true, then resume it",
    Hold.SUSPEND_SWALLOWED: "let the workflow pass BaseException at a wait, then resume it",
    Hold.REFUSED: "see tally doctor, then resume it",
}
SENTENCES: Final = {
    Stand.COMMITTED: _committed,
    Stand.CLEANING_UP: cleaning_up,
    Stand.STOPPING: _stopping,
    Stand.RUNNING: _running,
    Stand.LOST: _lost,
    Stand.ENDING: ending,
    Stand.ENDING_IN_DOUBT: ending_in_doubt,
    Stand.TO_CLEAN_UP: to_clean_up,
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
_ASKS: Final = frozenset({Stand.WAITING, Stand.ENDING, Stand.ENDING_IN_DOUBT})
_HAVE_TIME: Final = frozenset(Stand) - {
    *(Stand.CLEANING_UP, Stand.ENDING, Stand.ENDING_IN_DOUBT, Stand.TO_CLEAN_UP),
    *(Stand.LATE, Stand.COMMITTED),
}
