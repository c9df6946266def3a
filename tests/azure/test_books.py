"""`verify` and `doctor` read the books of these jobs: what was changed by hand or left behind is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.engine.audit.jobs import audit
from tallystick.engine.audit.whole_store import verify
from tallystick.store.azure import keys
from tallystick.store.azure.requests import Drop, Put, Row, write
from tallystick.testing.conformance.protocol_runs import PULLED, RunningProtocol
from tests.azure.subject import AzureSubject
from tests.azure.worlds import ModelSubject

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


def test_the_doctor_finds_a_job_that_nobody_would_look_at():
    subject = ModelSubject()
    run = RunningProtocol(subject)
    subject.clock.advance(HOUR_MS)
    assert not subject.store.inspect().health().problems
    row = one(subject, keys.DUE)
    subject.store.client.ask(write(Drop(keys.DUE, row.pk, row.rk)))
    (problem,) = subject.store.inspect().health().problems
    assert run.job_id in problem
    assert "when to look" in problem


def test_the_doctor_finds_a_copy_that_is_behind():
    subject = ModelSubject()
    run = RunningProtocol(subject)
    before = one(subject, keys.JOBS)
    run.publish()
    subject.clock.advance(HOUR_MS)
    change(subject, keys.JOBS, one(subject, keys.JOBS), n=before.values["n"])
    (problem,) = subject.store.inspect().health().problems
    assert "is at version 1 and it is at 2" in problem
