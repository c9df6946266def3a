"""What a child does: submit, send, work, or remove; armed to die, held, or without a guard."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tallystick import crash
from tallystick.app.replay import call_drivers as driving
from tallystick.app.replay.calls import InTransaction
from tallystick.app.replay.context import WorkflowContext
from tallystick.clock import SystemClock
from tallystick.engine.committer import Committer
from tallystick.engine.pending_writes import Blocked
from tallystick.errors import NoSuchSchedule
from tallystick.store.api import Bundle, RecordStep, Store
from tallystick.store.sqlite import store as sqlite_store
from tallystick.testing.stepping import tick_schedules
from tests.crash.sweep import control_workload, facts, mutants, workload
from tests.crash.sweep.long_flush import FLUSH, LongFlush
from tests.crash.sweep.place import Place, Sent
from tests.crash.sweep.processes import Line
from tests.crash.sweep.statements import sql

BOOKED_KIND = "booked"
KEYED_KIND = "keyed"

# Small enough that a trial of a few jobs meets a checkpoint.
_CHECKPOINT_PAGES = 20


def reported(pid: int) -> str:
    """Return the mark of a process whose report the store has taken or refused, after it was held."""
    return f"reported-{pid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """How a child differs from an ordinary process."""

    arm: str = ""
    hold: str = ""
    mutant: str = ""
    count: bool = False
    queues: tuple[str, ...] = facts.QUEUES
    submits: tuple[str, ...] = ()
    seconds: float = 30.0
    grace: float = 5.0


def submit(place: Place, line: Line, duty: Duty, jobs: tuple[str, ...], turn: int) -> int:
    """Submit and send what was not acknowledged before, and note each acknowledgement on disk."""
    visits = _prepare(place, line, duty)
    app = workload.app
    with app.transaction() as db:
        db.execute(sql("create_effects", workload.scene.place.store))
    done = {label.partition(".")[0] for label, _job_id in place.acknowledged()}
    for index, kind in enumerate(jobs):
        name = f"{index}-{kind}"
        if name not in done:
            label = name if kind in (KEYED_KIND, facts.RETRIED, facts.TICK) else f"{name}.{turn}"
            place.acknowledge(label, _submit_one(kind, label))
    _send_due(place)
    app.close()
    _tell(line, visits)
    return 0


def send(place: Place, line: Line, duty: Duty) -> int:
    """Send and cancel what is due and was not acknowledged before, until every job is final."""
    visits = _prepare(place, line, duty)
    clock = SystemClock()
    until = clock.monotonic() + duty.seconds
    look = threading.Event()
    store = workload.app.runtime().store
    while not _is_over(place, store) and clock.monotonic() < until:
        _send_due(place)
        look.wait(place.look_seconds)
    workload.app.close()
    _tell(line, visits)
    return 0


def work(place: Place, line: Line, duty: Duty) -> int:
    """Work until every job is final; that is 0, and running out of time is EXIT_UNFINISHED.

    What it submits itself is claimed in the same bundle.
    """
    visits = _prepare(place, line, duty)
    app = workload.app
    clock = SystemClock()
    until = clock.monotonic() + duty.seconds
    look = threading.Event()
    with app.worker(queues=duty.queues, concurrency=8, lease=place.lease_ms / 1000, grace=duty.grace):
        for index, kind in enumerate(duty.submits):
            label = f"{kind}-{index}.{os.getpid()}"
            place.acknowledge(label, _submit_one(kind, label))
        store = app.runtime().store
        while not (done := _is_over(place, store)) and clock.monotonic() < until:
            look.wait(place.look_seconds)
    app.close()
    _tell(line, visits)
    return 0 if done else facts.EXIT_UNFINISHED


def _is_over(place: Place, store: Store) -> bool:
    return place.marked(facts.TWICE) or control_workload.settled(store)


def come_and_go(place: Place, line: Line, duty: Duty) -> int:
    """Submit jobs under keys and by a schedule, cancel them, and remove them a few at a time."""
    visits = _prepare(place, line, duty)
    for number in range(facts.FLEETING_JOBS):
        label = f"{facts.FLEETING}-{number}"
        workload.fleeting.opts(idempotency_key=label, reuse="after_end").submit(label).cancel()
    _tick(place)
    workload.app.queues.set(facts.FLEETING, concurrency=1)
    workload.app.queues.reset(facts.FLEETING)
    while workload.app.prune(older_than=0, limit=2):
        continue
    workload.app.close()
    _tell(line, visits)
    return 0


def _tick(place: Place) -> None:
    """Let a schedule make a job, and cancel that; whoever follows a process that died does it again."""
    book, label = workload.app.schedules, f"{facts.FLEETING}-tick"
    book.add(label, workload.fleeting, timedelta(seconds=1), args=[label])
    look = threading.Event()
    while not (made := workload.app.jobs(tag=f"schedule:{label}")):
        tick_schedules(workload.app)
        look.wait(place.look_seconds)
    book.remove(label)
    for job in made:
        job.cancel()


def _submit_one(kind: str, label: str) -> str:
    if kind == KEYED_KIND:
        return workload.order.opts(idempotency_key=label).submit(label).id
    if kind == facts.RETRIED:
        return control_workload.brittle.opts(idempotency_key=label).submit(label).id
    if kind == facts.TICK:
        return _plan_tick(label)
    if kind == BOOKED_KIND:
        with workload.app.transaction() as db:
            db.execute(sql("insert_effect", workload.scene.place.store), (label, facts.BOOKED, label))
            job = workload.receipt.opts(within=db).submit(label)
        return job.id
    return workload.app.workflows[kind, ""].submit(label).id


def _plan_tick(label: str) -> str:
    """Add a schedule of one tick that comes soon; one that is there is left alone, and another is tried."""
    book = workload.app.schedules
    while True:
        with suppress(NoSuchSchedule):
            seen = book.get(label)
            if seen.next_at or seen.last_at:
                return facts.PLANNED
        soon = datetime.now(UTC) + timedelta(milliseconds=facts.TICK_MS)
        book.add(label, workload.tick, soon, args=[label], missed="all")


def _send_due(place: Place) -> None:
    """Send every signal and cancellation whose time has come; repeated by whoever follows a dead sender.

    Jobs of a submitter that died before it could note them are told too.
    """
    done = {(sent.job_id, sent.id) for sent in place.sent()}
    store = workload.app.runtime().store
    for handler in {*facts.SIGNALS, *facts.CANCELLED}:
        for row in store.jobs(
            tenant_id="default", states=facts.UNFINISHED_STATES, handler=handler, after=None, limit=100
        ):
            job, label = workload.app.job(row.job_id), json.loads(row.payload)["label"]
            for signal in facts.SIGNALS.get(handler, ()):
                due = not signal.when or place.marked(f"{signal.when}-{label}")
                if due and (job.id, signal.id) not in done:
                    outcome = job.send(signal.name, signal.value, id=signal.id)
                    place.note_sent(Sent(job.id, signal.id, outcome.name))
            asked = place.marked(f"{facts.CANCELLED.get(handler)}-{label}")
            if asked and (job.id, facts.CANCEL_ID) not in done:
                place.note_sent(Sent(job.id, facts.CANCEL_ID, job.cancel(grace=place.lease_ms / 1000).name))
    control_workload.control_due(place)


def _prepare(place: Place, line: Line, duty: Duty) -> Counter[str]:
    """Make this process what its duty says, and return the visits that it will count."""
    workload.app.bind(place.url)
    workload.scene.place = place
    workload.scene.hold = _holding(place, line, duty.hold)
    mutants.put(sqlite_store, "CHECKPOINT_PAGES", _CHECKPOINT_PAGES)
    mutants.apply(duty.mutant, place.store)
    mutants.put(driving, "transact", _held_before(driving.transact))
    if duty.hold == FLUSH:
        LongFlush(place).install()
    crash.arm(duty.arm)
    visits: Counter[str] = Counter()
    if duty.count:
        mutants.put(crash, "point", lambda name: visits.update((name,)))
    return visits


def _tell(line: Line, visits: Counter[str]) -> None:
    if visits:
        line.say(json.dumps(visits))


def _holding(place: Place, line: Line, at: str) -> Callable[[str], None]:
    """Return a hold that stops its first visitor until the parent says go, and marks what it records."""
    first = threading.Lock()

    def hold(where: str) -> None:
        if where in at.split() and first.acquire(blocking=False):
            line.say("held")
            line.hear()
            _mark_report(place, threading.get_ident())

    return hold


def _mark_report(place: Place, author: int) -> None:
    """Mark that the store has taken or refused the step that this thread hands over next."""
    begin = Committer.begin

    def begin_and_mark(committer: Committer, bundle: Bundle) -> Blocked:
        request = begin(committer, bundle)
        if threading.get_ident() == author and type(bundle[0]) is RecordStep:
            mutants.put(Committer, "begin", begin)
            request.answer()
            place.first_time(reported(os.getpid()))
        return request

    mutants.put(Committer, "begin", begin_and_mark)


def _held_before(
    transact: Callable[[WorkflowContext, str, InTransaction], object],
) -> Callable[[WorkflowContext, str, InTransaction], object]:
    """Hold between the last look at the lease and the transaction."""

    def held(context: WorkflowContext, name: str, need: InTransaction) -> object:
        workload.scene.hold("before_tx")
        return transact(context, name, need)

    return held
