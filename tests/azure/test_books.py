"""`verify` and `doctor` read the books of these jobs: what was changed by hand or left behind is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.clock import SystemClock
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    CancelProtocol,
    DeliverDirective,
    NotPublished,
)
from tallystick.engine.audit.jobs import audit
from tallystick.engine.audit.whole_store import verify
from tallystick.store.azure import keys
from tallystick.store.azure.changing import ALONE_MS
from tallystick.store.azure.requests import Drop, Put, Row, write
from tallystick.testing.conformance.drafts import bundles, done
from tallystick.testing.conformance.protocol_runs import OK, PULLED, PUSHED, RunningProtocol, command
from tests.azure.subject import AzureSubject
from tests.azure.test_prefixes import VERBS, Setup, cut
from tests.azure.worlds import ModelSubject, judge, run_out

HOUR_MS = 3_600_000


def one(subject: AzureSubject, table: str, rk: str | None = None) -> Row:
    return next(row for row in subject.rows(table) if rk is None or row.rk == rk)


def change(subject: AzureSubject, table: str, row: Row, **values: object) -> None:
    changed = Put(table, row.pk, row.rk, {**row.values, **values}, row.etag)  # type: ignore[dict-item]  # by hand
    subject.store.client.ask(write(changed))


@pytest.mark.slow
def test_the_books_of_jobs_that_ended_and_that_go_on_are_true(subject: AzureSubject):
    RunningProtocol(subject, 3).answer()
    ended = RunningProtocol(subject, 1, PULLED)
    ended.answer()
    found = verify(subject.store)
    assert (found.jobs, found.findings) == (2, [])
    assert subject.store.inspect().health().problems == ()


DAMAGES: dict[str, Callable[[AzureSubject], None]] = {
    "columns": lambda s: change(s, keys.STEPS, one(s, keys.STEPS, keys.step_row(0, "s0")), output_ref="x"),
    "outbox": lambda s: change(s, keys.OUTBOX, one(s, keys.OUTBOX), topic="elsewhere"),
    "chain": lambda s: change(s, keys.EVENTS, one(s, keys.EVENTS), payload="{}"),
    "digits": lambda s: change(s, keys.STEPS, one(s, keys.STEPS, keys.step_row(0, "s0")), ledger=7),
    "birth": lambda s: change(s, keys.STEPS, one(s, keys.STEPS, keys.HEAD), payload='{"n":1}'),
}


@pytest.mark.parametrize("check", DAMAGES)
def test_what_was_changed_by_hand_is_found(check: str):
    subject = ModelSubject()
    RunningProtocol(subject, 2).answer()
    assert not audit(subject.store).findings
    DAMAGES[check](subject)
    assert check in {finding.check for finding in audit(subject.store).findings}


def lose_looks(subject: AzureSubject) -> None:
    """Delete by hand what says when to look at jobs."""
    for row in subject.rows(keys.DUE):
        subject.store.client.ask(write(Drop(keys.DUE, row.pk, row.rk)))


def test_the_doctor_finds_a_job_that_nobody_would_look_at():
    subject = ModelSubject()
    run = RunningProtocol(subject)
    subject.clock.advance(HOUR_MS)
    assert not subject.store.inspect().health().problems
    lose_looks(subject)
    (problem,) = subject.store.inspect().health().problems
    assert run.job_id in problem
    assert "when to look" in problem
    assert "an ACK, a RESULT or `tally cancel` mends it" in problem


MENDING: dict[str, tuple[Policy, Setup]] = {
    name: verb for name, verb in VERBS.items() if not name.startswith("heartbeat")
} | {
    "late ack": (PULLED, lambda run: AckStep(run.fence._replace(lease_id="old"))),
    "result of a step that is over": (
        PUSHED,
        lambda run: run.publish() and AnswerStep(run.fence, OK, "next"),
    ),
    "cancel twice": (PUSHED, lambda run: run.publish() and run.apply(cancel(run)) and cancel(run)),
}


def cancel(run: RunningProtocol) -> CancelProtocol:
    return CancelProtocol(run.job_id)


@pytest.mark.parametrize("name", MENDING)
@pytest.mark.parametrize("remembers", [True, False], ids=["by who remembers the job", "by another"])
def test_what_the_doctor_says_mends_a_job_that_nobody_would_look_at(name: str, *, remembers: bool):
    policy, setup = MENDING[name]
    subject = ModelSubject()
    run = RunningProtocol(subject, 2, policy)
    request = setup(run)
    subject.clock.advance(ALONE_MS)
    lose_looks(subject)
    if not remembers:
        subject = run.subject = subject.reopened()
    done(subject.store, request)
    judge(subject, swept=False)
    run_out(subject)
    judge(subject)


@pytest.mark.parametrize("name", MENDING)
def test_a_mending_that_was_cut_off_is_ended_by_itself(name: str):
    policy, setup = MENDING[name]
    for after in range(100):
        subject = ModelSubject()
        run = RunningProtocol(subject, 2, policy)
        request = setup(run)
        subject = run.subject = subject.reopened()
        subject.clock.advance(ALONE_MS)
        lose_looks(subject)
        if cut(subject, request, after):
            return
        done(subject.reopened().store, request)
        judge(subject, swept=False)
    raise AssertionError("it never ends")


def test_a_row_that_was_lost_is_written_when_the_next_one_takes_its_place():
    subject = ModelSubject()
    run = RunningProtocol(subject, 1, PULLED)
    lose_looks(subject)
    subject.clock.advance(1_000)
    run.apply(DeliverDirective(run.job_id, "s0", 1, "w"))
    judge(subject, swept=False)


def test_the_doctor_finds_an_open_job_behind_many_that_have_ended():
    subject = ModelSubject()
    first = RunningProtocol(subject, 1, PULLED)
    subject.store.apply(bundles(*(command(1, PULLED) for _ in range(600))))
    for job in subject.jobs():
        if job.job_id != first.job_id:
            done(subject.store, CancelProtocol(job.job_id))
    subject.clock.advance(HOUR_MS)
    lose_looks(subject)
    health = subject.store.inspect().health(jobs_max=10)
    assert [first.job_id in problem for problem in health.problems] == [True]
    assert health.facts["open_jobs_examined"] == 1
    assert health.warnings == ()


def test_the_doctor_says_how_many_open_jobs_it_has_examined():
    subject = ModelSubject()
    subject.clock.advance(
        SystemClock().wall_ms() - subject.clock.wall_ms()
    )  # identifiers begin with the time
    first = RunningProtocol(subject, 1, PULLED)
    subject.store.apply(bundles(*(command(1, PULLED) for _ in range(520))))
    subject.clock.advance(HOUR_MS)
    row = next(row for row in subject.rows(keys.DUE) if first.job_id in row.rk)
    subject.store.client.ask(write(Drop(keys.DUE, row.pk, row.rk)))
    some, everything = (subject.store.inspect().health(jobs_max=most) for most in (20, None))
    assert (some.facts["open_jobs_examined"], some.problems) == (20, ())
    assert some.warnings == ("20 open jobs were examined, the newest; `tally doctor --all` examines all",)
    assert (everything.facts["open_jobs_examined"], everything.warnings) == (521, ())
    assert [first.job_id in problem for problem in everything.problems] == [True]


def test_the_doctor_finds_a_copy_that_is_behind():
    subject = ModelSubject()
    run = RunningProtocol(subject)
    before = one(subject, keys.JOBS)
    run.publish()
    subject.clock.advance(HOUR_MS)
    change(subject, keys.JOBS, one(subject, keys.JOBS), n=before.values["n"])
    (problem,) = subject.store.inspect().health().problems
    assert "is at version 1 and it is at 2" in problem


def test_an_outbox_is_read_page_by_page():
    subject = ModelSubject()
    jobs = [command(1, PULLED) for _ in range(60)]
    subject.store.apply(bundles(*jobs))
    inspection = subject.store.inspect()
    found, after = list[str](), ""
    while True:
        before, sent = subject.client.requests, len(subject.client.sent)
        page = inspection.waiting_directives("acme", "svc", after=after, limit=25)
        assert subject.client.requests - before == 2, "one for each month"
        assert {request.limit for request in subject.client.sent[sent:]} == {25}  # type: ignore[union-attr]  # these are reads
        found += [row.outbox_id for row in page]
        if len(page) < 25:
            break
        after = page[-1].outbox_id
    assert found == sorted(f"{job.job_id}:s0:1" for job in jobs)


def test_what_is_dead_in_an_outbox_is_found_behind_what_was_withdrawn():
    subject = ModelSubject()
    for _ in range(30):
        run = RunningProtocol(subject, 1, PULLED)
        run.apply(CancelProtocol(run.job_id))
    dead = RunningProtocol(subject)
    dead.apply(NotPublished(dead.fence, 1, "gone", final=True))
    inspection = subject.store.inspect()
    assert [row.job_id for row in inspection.dead_directives("acme", None, after="", limit=1)] == [
        dead.job_id
    ]
    assert inspection.dead_directives("acme", None, after=f"{dead.job_id}:s0:1", limit=1) == []
    assert [lag.dead for lag in inspection.outbox_lag("acme")] == [1]
