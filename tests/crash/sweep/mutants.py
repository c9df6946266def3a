"""Guards that can be taken away in a child, to show that the oracle notices what they prevent."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import count
from os import getpid

import apsw

from tallystick.app.api.job import Job
from tallystick.app.replay import call_drivers as driving
from tallystick.app.replay.calls import InTransaction
from tallystick.app.replay.context import Inside, WorkflowContext, current
from tallystick.core import deciding
from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.pictures import Now, Pictures, join_of, place_of
from tallystick.core.plans import Decision, MoveAttempt, MoveJob, Plan
from tallystick.core.verbs import children
from tallystick.core.verbs.endings import end_job
from tallystick.core.verbs.reclaiming import reclaim
from tallystick.core.verbs.waiting import suspend_or_answer
from tallystick.engine.committer import Committer
from tallystick.store import forks
from tallystick.store.api import (
    Await,
    Bundle,
    Delivered,
    EndJob,
    ExpiredAttempt,
    Fence,
    Outcome,
    ReclaimAttempt,
    SaveSchedule,
    SubmitJob,
)
from tallystick.store.sql import statements
from tallystick.store.sql.statements import Dialect
from tallystick.store.sqlite import store as stores
from tallystick.store.sqlite.file import connection as connections
from tallystick.store.sqlite.looking import chain_end
from tallystick.store.sqlite.statements import DIALECT
from tallystick.worker import clockwork
from tallystick.worker.roles import reclaim as reclaim_role
from tallystick.worker.roles.report import ReportLife

_HASTE_SECONDS = 0.05


def apply(name: str, store: str = "sqlite") -> None:
    """Take a guard away from this process, for good; an empty name changes nothing."""
    if name and store == "postgres":
        from tests.crash.sweep import postgres_mutants

        postgres_mutants.MUTANTS.get(name, MUTANTS[name])()
    elif name:
        MUTANTS[name]()


def put(owner: object, name: str, value: object) -> None:
    """Replace something of this process that must be there."""
    if not hasattr(owner, name):
        raise LookupError(f"{owner!r} has no {name} any more; the harness must follow it")
    setattr(owner, name, value)


def effect_on_its_own() -> None:
    """Write a tx's rows in one transaction and its marker, with the fence, in the next."""

    def transact(context: WorkflowContext, name: str, need: InTransaction) -> object:
        token = current.set(Inside(context, name, need.occurrence, in_tx=True))
        try:
            with context.runtime.store.transaction() as db:
                step = need.body(db)
        finally:
            current.reset(token)
        context.runtime.committer.call((step,))
        return step

    put(driving, "transact", transact)


def steps_without_fence() -> None:
    """Let any lease, live or not, record a step."""
    leave_out(DIALECT, "insert_steps", r"AND live\.status = .*?events\.n = given\.n\)")
    _places_taken_twice()


def end_after_expiry() -> None:
    """Let an attempt end its job after its lease has run out, when nobody has reclaimed it yet."""
    leave_out(DIALECT, "end_attempts", r"AND lease_epoch = given\.epoch AND lease_expires_at > given\.boot")
    nobody_reclaims()


def end_waited_after_expiry() -> None:
    """Let an attempt at a job that has waited end it after its lease has run out."""

    def late(pictures: Pictures, request: EndJob, now: Now) -> Decision:
        seen = pictures.overlay((request.fence.job_id,))
        picture = seen[request.fence.job_id]
        lease = picture.lease
        if lease is None:
            return end_job(seen, request, now)
        picture.lease = lease._replace(live=True)
        decision = end_job(seen, request, now)
        if not isinstance(decision, Plan):
            return decision
        as_it_is = (w._replace(live=lease.live) if isinstance(w, MoveAttempt) else w for w in decision.writes)
        return decision._replace(writes=tuple(as_it_is))

    put(deciding, "end_job", late)
    nobody_reclaims()


def suspend_without_looking() -> None:
    """Open a wait without a look at what came before it; only what comes later wakes the job."""

    def blind(pictures: Pictures, request: Await, now: Now) -> Decision:
        seen = pictures.overlay((request.fence.job_id,))
        picture = seen[request.fence.job_id]
        places = {wait.name: place_of(request.dimension, wait) for wait in request.waits}
        new = {name for name, place in places.items() if place not in picture.activities}
        picture.messages = {m.guid: m for m in picture.messages.values() if m.ledger or m.name not in new}
        return suspend_or_answer(seen, request, now)

    put(deciding, "suspend_or_answer", blind)


def word_without_a_name() -> None:
    """Let every child that finds its group closed leave a word of its own for the parent."""
    numbers = count()

    def nameless(job_id: str, group: str) -> str:
        return f"{join_of(job_id, group)}:{getpid()}:{next(numbers)}"

    put(children, "join_of", nameless)


def signals_without_id() -> None:
    """Forget the identifier by which a repeated sending is the same signal."""
    send = Job.send

    def forgetful(job: Job[object], name: str, value: object = None, *, id: str | None = None) -> Delivered:  # noqa: A002 (as it is called)
        return send(job, name, value, id=id and None)

    put(Job, "send", forgetful)


def retries_unmarked() -> None:
    """Make a new job in the place of one that failed, and do not tell that one."""
    put(forks, "take_place", lambda *_arguments, **_named: None)


def ticks_in_two_bundles() -> None:
    """Make the job of a tick first, under a key of no meaning, and then the schedule behind it."""
    numbers, call_all = count(), Committer.call_all

    def in_two(committer: Committer, bundles: Sequence[Bundle]) -> list[Outcome | BaseException]:
        ticks = [bundle for bundle in bundles if isinstance(bundle[-1], SaveSchedule) and len(bundle) > 1]
        if not ticks:
            return call_all(committer, bundles)
        call_all(committer, [bundle[:1] for bundle in ticks])
        return call_all(committer, [bundle[-1:] if bundle in ticks else bundle for bundle in bundles])

    put(clockwork, "key_of", lambda schedule_id, _tick: f"{schedule_id}:{getpid()}:{next(numbers)}")
    put(Committer, "call_all", in_two)


def nobody_reclaims() -> None:
    """Leave attempts whose lease has run out as they are."""
    put(reclaim_role, "sweep", lambda *_arguments: 0)


def reclaimed_and_not_due() -> None:
    """End the attempt of a dead worker, and let its job wait for ever."""

    def forgetful(pictures: Pictures, request: ReclaimAttempt, now: Now) -> Decision:
        decision = reclaim(pictures, request, now)
        if not isinstance(decision, Plan) or decision.outcome is not Reclaim.RETRY:
            return decision
        writes = tuple(
            each._replace(job=each.job._replace(ready_at=None)) if isinstance(each, MoveJob) else each
            for each in decision.writes
        )
        return decision._replace(writes=writes)

    put(deciding, "reclaim", forgetful)


def nobody_is_charged() -> None:
    """Excuse every worker that is lost, so that a job which kills each of them is taken up for ever."""

    def lenient(pictures: Pictures, request: ReclaimAttempt, now: Now) -> Decision:
        return reclaim(pictures, request._replace(excused=True), now)

    put(deciding, "reclaim", lenient)


def reclaim_as_it_was_read() -> None:
    """Let a sweep end an attempt whose holder has written since the sweep looked."""
    expired = stores.SqliteStore.expired
    ends: dict[Fence, tuple[int, bytes]] = {}

    def remembering(store: stores.SqliteStore, limit: int) -> list[ExpiredAttempt]:
        found = expired(store, limit)
        reader = store._reader.cursor()
        for lost in found:
            ends[lost.fence] = chain_end(reader, lost.fence.job_id)
        return found

    def from_memory(pictures: Pictures, request: ReclaimAttempt, now: Now) -> Decision:
        pictures[request.fence.job_id].end = ends[request.fence]
        return reclaim(pictures, request, now)

    put(stores.SqliteStore, "expired", remembering)
    put(deciding, "reclaim", from_memory)
    # The flush that is held is to be the job's, not the one in which its worker says that it lives.
    put(ReportLife, "run", lambda _role: None)
    _places_taken_twice()


def acknowledge_at_once() -> None:
    """Answer a submit before it is durable."""
    call = Committer.call

    def hasty(committer: Committer, bundle: Bundle) -> Outcome:
        if not isinstance(bundle[0], SubmitJob):
            return call(committer, bundle)
        threading.Timer(_HASTE_SECONDS, lambda: committer.begin(bundle)).start()
        return None

    put(Committer, "call", hasty)


MUTANTS: dict[str, Callable[[], None]] = {
    mutant.__name__: mutant
    for mutant in (
        effect_on_its_own,
        steps_without_fence,
        end_after_expiry,
        end_waited_after_expiry,
        nobody_reclaims,
        reclaimed_and_not_due,
        nobody_is_charged,
        acknowledge_at_once,
        reclaim_as_it_was_read,
        suspend_without_looking,
        word_without_a_name,
        signals_without_id,
        retries_unmarked,
        ticks_in_two_bundles,
    )
}


def without_places(store: str) -> str:
    """Return the statements that take out what keeps a place of a chain from being taken twice."""
    return files(__package__).joinpath(f"places_of_{store}.sql").read_text(encoding="utf-8")


def _places_taken_twice() -> None:
    """Take the key and the guards of places out of the file, so that they cannot help."""
    forget = connections.forget_statistics

    def forget_them_too(connection: apsw.Connection) -> None:
        forget(connection)
        connection.execute(without_places("sqlite"))

    put(stores, "forget_statistics", forget_them_too)


def leave_out(dialect: Dialect, name: str, *guards: str, instead: str = "") -> None:
    """Change what is said to a database in one statement: leave guards out of it."""
    source = statements.find(dialect, name)
    for guard in guards:
        if not re.search(guard, source.text):
            raise LookupError(
                f"the statement {name} does not say {guard} any more; the mutant must follow it"
            )
        source = source._replace(text=re.sub(guard, instead, source.text))
    find = statements.find
    put(statements, "find", lambda said, wanted: source if wanted == name else find(said, wanted))
