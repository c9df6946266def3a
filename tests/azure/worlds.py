"""Protocol jobs on the model of the service: what must be so when nobody is at work, and time that passes."""

from __future__ import annotations

from collections.abc import Iterator

from tallystick.core.remote.requests import ExpireStep, NotPublished, StepFence, TakeDirective
from tallystick.engine.audit.jobs import audit
from tallystick.store.azure import keys
from tallystick.store.azure.changing import LOOK_MS
from tallystick.store.azure.entities import unpacked
from tallystick.store.azure.heads import Seen, read_job, wake
from tallystick.store.azure.requests import get
from tallystick.store.azure.store import AzureStore
from tallystick.testing.conformance.drafts import done
from tests.azure.service import ModelClient, Tables
from tests.azure.subject import AzureSubject
from tests.model.protocol_judging import judge_picture

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class ModelSubject(AzureSubject):
    """Tables in memory, opened."""

    def __init__(self, tables: Tables | None = None, *, twice: bool = False) -> None:
        self.client = ModelClient(Tables() if tables is None else tables, twice=twice)
        super().__init__("azure://model/model", self.client)

    def reopened(self) -> ModelSubject:
        """Return the same tables as another process sees them at the same time."""
        other = ModelSubject(self.client.tables)
        other.clock.advance(self.clock.wall_ms() - other.clock.wall_ms())
        return other


def sweep(subject: AzureSubject) -> None:
    """Do what the roles of a worker do in one turn; no directive ever reaches its service."""
    store = subject.store
    for job_id, _step in store.due_steps(100):
        done(store, ExpireStep(job_id, f"lease {subject.clock.wall_ms()}"))
    for row in store.stray_directives((), 0, 100):
        taken = done(store, TakeDirective(row.job_id, row.step_id, row.attempt_no))
        if taken.directive is not None:  # type: ignore[attr-defined]  # this is a hearing
            fence = StepFence(row.job_id, row.step_id, row.attempt_no, row.lease_id)
            tries = taken.directive.tries  # type: ignore[attr-defined]  # this is one, too
            done(store, NotPublished(fence, tries, "away"))


def mending(subject: AzureSubject) -> Iterator[int]:
    """Let the sweep alone look at everything that somebody has left, and nothing else happen.

    Ten minutes and more pass for it, so a step may expire on the way.
    """
    for minutes in (0, 1, 15):
        subject.clock.advance(minutes * 60_000)
        sweep(subject)
        sweep(subject)
        yield minutes


def mend(subject: AzureSubject) -> None:
    """Do all of that."""
    for _look in mending(subject):
        pass


def run_out(subject: AzureSubject) -> None:
    """Let time pass until nothing is open, without any report."""
    for _day in range(200):
        rows = subject.rows(keys.DUE)
        if not rows:
            return
        later = min(keys.due_instant(row.rk) for row in rows) - subject.clock.wall_ms()
        subject.clock.advance(max(later, 1_000))
        sweep(subject)
    raise AssertionError(f"something is due for ever: {subject.rows(keys.DUE)}")


def judge(subject: AzureSubject, *, swept: bool = True, lags: bool = False) -> None:
    """Insist on what holds whenever nobody is at work: rows have followed their jobs, and the books are true.

    What says when to look at a job may outlive it until the sweep has looked. If it `lags`, its tail may wait
    for that look, which is noted: nobody has come to the job since a process died.
    """
    store, due = subject.store, {row.rk for row in subject.rows(keys.DUE)}
    ready = {(row.pk, row.rk) for row in subject.rows(keys.READY)}
    for head in subject.rows(keys.STEPS):
        if head.rk != keys.HEAD:
            continue
        seen = read_job(subject.rows(keys.STEPS, head.pk))
        if seen is None:
            continue
        judge_picture(seen.picture)
        copy = store.client.ask(get(keys.JOBS, seen.head.partition, head.pk))
        n = None if copy is None else copy.values["n"]
        if lags and n != seen.head.n:
            assert {seen.head.armed, seen.head.former} & due, "nobody would ever finish it"
            return
        assert copy is not None, "nobody has made its copy"
        assert n == seen.head.n
        assert unpacked(copy.values)["state"] == seen.head.job.state
        if seen.head.is_final:
            left = [rk for rk in due if seen.head.job.job_id in rk]
            assert not left or lags or not swept, "it has ended and is looked at"
        else:
            at = wake(seen.picture)
            assert at is not None
            assert seen.head.armed in due, "nobody would ever look at it"
            late = keys.due_instant(seen.head.armed) > max(at, subject.clock.wall_ms())
            assert not late, "it would be looked at too late"
            judge_look(subject, seen)
            due.remove(seen.head.armed)
        pending = seen.picture.pending
        if pending is not None and pending.is_pulled:
            assert keys.ready_place(pending) in ready, "no remote worker could ask for it"
    found = audit(store).findings
    assert not found, found


def judge_look(subject: AzureSubject, seen: Seen) -> None:
    """Insist that the row which says when to look at a job is read by those that have to act."""
    (row,) = (row for row in subject.rows(keys.DUE) if row.rk == seen.head.armed)
    pending = seen.picture.pending
    if pending is not None and not pending.is_pulled:
        assert row.values["reader"] == keys.relay_to(pending.via), "no relay would ever take it"
    left = str(row.values["look_at"])
    assert not left or int(left) <= subject.clock.wall_ms() + LOOK_MS, "the sweep would not look at it"


def is_whole(store: AzureStore, job_id: str) -> bool:
    """Tell whether a job is there."""
    return store.protocol(job_id) is not None
