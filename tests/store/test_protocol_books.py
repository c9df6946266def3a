"""The books of protocol jobs: the audit finds nothing in them, and finds what is changed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.core.lifecycles import JobState
from tallystick.core.remote.requests import CancelProtocol
from tallystick.engine.audit import audit
from tallystick.testing.conformance.protocol_runs import FINAL, OK, PULLED, RETRY, RunningProtocol
from tests.store.sqlite_subject import SqliteSubject


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[SqliteSubject]:
    subject = SqliteSubject(tmp_path / "books.db")
    yield subject
    subject.close()


def situations(subject: SqliteSubject) -> list[RunningProtocol]:
    """Return protocol jobs in every situation that a commit leaves."""
    fresh, waiting, begun, failed, done, asked, late = (RunningProtocol(subject, 2) for _ in range(7))
    pulled = RunningProtocol(subject, 2, PULLED)
    waiting.answer(RETRY)
    begun.publish()
    begun.ack()
    failed.answer(FINAL)
    done.answer(OK)
    done.answer(OK)
    asked.publish()
    asked.apply(CancelProtocol(asked.job_id))
    late.answer(RETRY)
    late.apply(CancelProtocol(late.job_id))
    refused = RunningProtocol(subject, 2)
    refused.publish()
    refused.apply(CancelProtocol(refused.job_id))
    refused.answer(RETRY)
    return [fresh, pulled, waiting, begun, failed, done, asked, late, refused]


def test_the_audit_finds_nothing_in_any_situation(subject: SqliteSubject):
    runs = situations(subject)
    states = {run.states()[0] for run in runs}
    assert states == {"DISPATCHING", "IN_PROGRESS", "CANCELLING", "CANCELLED", "FAILED_FINAL", "SUCCEEDED"}
    found = audit(subject.store)
    assert (found.jobs, found.findings) == (len(runs), [])


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("UPDATE jobs SET semaphore = 1", "semaphore"),
        ("UPDATE jobs SET attempts_total = 7", "attempts"),
        ("UPDATE jobs SET current_step_id = 's1'", "state"),
        ("UPDATE steps SET lease_expires_at = NULL WHERE name = 's0'", "state"),
        ("UPDATE steps SET ledger = ledger + 1000000000000 WHERE name = 's0'", "digits"),
        ("UPDATE outbox SET state = 'FAILED_FINAL'", "outbox"),
        ("UPDATE jobs SET root_ledger = root_ledger + 1", "digits"),
        ("UPDATE jobs SET input_ref = 's3://elsewhere'", "content"),
    ],
)
def test_the_audit_finds_what_was_changed_by_hand(subject: SqliteSubject, change: str, check: str):
    run = RunningProtocol(subject, 2)
    subject.by_hand.execute(change)
    assert check in {finding.check for finding in audit(subject.store).findings}, run.picture


def test_a_protocol_job_is_cancelled_like_any_other(tmp_path: Path):
    subject = SqliteSubject(tmp_path / "shop.db")
    runs = [RunningProtocol(subject, 2, PULLED), RunningProtocol(subject, 2)]
    runs[1].publish()
    states = [run.picture for run in runs]
    assert all(state.job.completed_at is None for state in states)
    subject.close()
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}")
    try:
        assert app.job(runs[0].job_id).cancel() is JobState.CANCELLED
        assert app.job(runs[1].job_id).cancel() is JobState.CANCELLING
        assert app.job(runs[1].job_id).cancel() is JobState.CANCELLING
        assert app.job(runs[0].job_id).cancel() is JobState.CANCELLED
    finally:
        app.close()
