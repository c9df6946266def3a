"""The part of the workload that is held, forked and retried, and what somebody outside does for that.

What is to be done is read from the store, so whoever follows a sender that died goes on where it stopped: a
job that was retried is no dead letter, and one that was forked has a fork.
"""

from __future__ import annotations

import json

from tallystick.app.api.steps import Tx
from tallystick.app.replay.waits import wait
from tallystick.errors import Fatal
from tallystick.store.api import JobRow, Schedules, Store
from tests.crash.sweep import facts
from tests.crash.sweep.place import Place, Sent
from tests.crash.sweep.waiting_workload import tick
from tests.crash.sweep.workload import PATIENT, SOON, app, scene, write_effect

_PAGE = 100
_TICKS = 3


@app.tx(retry=SOON)
def rest(db: Tx, label: str) -> None:
    """Lie down once."""
    write_effect(db, label, "rest", label)


@app.workflow(attempts=PATIENT)
def nap(label: str) -> str:
    """Be paused at some call or wait, and go on after that."""
    rest(label)
    scene.reached(label, facts.NAPPING)
    for _ in range(_TICKS):
        tick(label)
    word = wait("wake", str)
    scene.hold("woken")
    return word


@app.tx(retry=SOON)
def brace(db: Tx, label: str) -> None:
    """Do what a retry must not do again."""
    write_effect(db, label, "brace", label)


@app.step
def snap(label: str) -> str:
    """Fail for good until somebody has mended it."""
    if not scene.place.marked(f"{facts.MENDED}-{label}"):
        raise Fatal(f"{label} has snapped")
    return scene.token(label, "snap")


@app.tx(retry=SOON)
def mend(db: Tx, label: str) -> None:
    """Do once what only the retry comes to."""
    write_effect(db, label, "mend", label)


@app.workflow(attempts=PATIENT)
def brittle(label: str) -> str:
    """Fail; in the place of the job that failed, succeed."""
    brace(label)
    snap(label)
    mend(label)
    return label


@app.tx(retry=SOON)
def outline(db: Tx, label: str) -> None:
    """Do what a fork must not do again."""
    write_effect(db, label, "outline", label)


@app.step
def polish(label: str) -> str:
    """Return something that is different every time."""
    return scene.token(label, "polish")


@app.workflow(attempts=PATIENT)
def draft(label: str) -> str:
    """Do something, hear a word, and polish it; forks begin with the polishing."""
    outline(label)
    wait("word", str)
    return polish(label)


def control_due(place: Place) -> None:
    """Pause, resume, retry and fork what it is time for, and note each answer on disk."""
    store = app.runtime().store
    done = {(sent.job_id, sent.id) for sent in place.sent()}
    for row in _rows(store, "nap", facts.UNFINISHED_STATES):
        if not place.marked(f"{facts.NAPPING}-{_label(row)}"):
            continue
        job = app.job(row.job_id)
        if (job.id, facts.PAUSE_ID) not in done:
            place.note_sent(Sent(job.id, facts.PAUSE_ID, job.pause().name))
        elif (job.id, facts.RESUME_ID) not in done:
            place.note_sent(Sent(job.id, facts.RESUME_ID, job.resume().name))
        else:
            place.first_time(f"{facts.RESTED}-{_label(row)}")
    for row in _dead(store):
        place.first_time(f"{facts.MENDED}-{_label(row)}")
        place.note_sent(Sent(row.job_id, facts.RETRY_ID, app.job(row.job_id).retry().id))
        if (row.job_id, facts.RETRY_ID) in done:
            place.first_time(facts.TWICE)  # nothing that follows can mend that
    for row in _unforked(store):
        place.note_sent(Sent(row.job_id, facts.FORK_ID, app.job(row.job_id).fork(at="polish").id))


def settled(store: Store) -> bool:
    """Tell whether every tick is a job, every job is final, and nobody is left to be retried or forked."""
    assert isinstance(store, Schedules)
    if store.next_tick() is not None:
        return False
    # Asked twice: before the search for the dead somebody may have retried the last of them.
    return _all_final(store) and not _dead(store) and not _unforked(store) and _all_final(store)


def _all_final(store: Store) -> bool:
    return set(store.counts()) <= set(facts.FINAL_STATES)


def _dead(store: Store) -> list[JobRow]:
    return store.dead(tenant_id="default", handler="brittle", after=None, limit=_PAGE)


def _unforked(store: Store) -> list[JobRow]:
    """Return drafts that have come to their end and have no fork."""
    rows = _rows(store, "draft", (*facts.UNFINISHED_STATES, *facts.FINAL_STATES))
    forked = {row.retry_of for row in rows}
    return [
        row for row in rows if row.state == "SUCCEEDED" and row.retry_of is None and row.job_id not in forked
    ]


def _rows(store: Store, handler: str, states: tuple[str, ...]) -> list[JobRow]:
    return store.jobs(tenant_id="default", states=states, handler=handler, after=None, limit=_PAGE)


def _label(row: JobRow) -> str:
    return str(json.loads(row.payload)["label"])
