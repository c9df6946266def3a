"""A key that changes hands between the look and the lock is looked at again."""

from __future__ import annotations

import threading

import pytest

from tallystick import Tally
from tallystick.store.postgres.writer import PostgresBatch
from tallystick.testing.stepping import SteppedWorker, check_books


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_key_that_goes_from_job_to_job_while_it_is_looked_at_is_taken_in_the_end(
    timed, hand, url, clock, monkeypatch
):
    """Between each look and each lock another process gives the key to a new job, which ends."""

    @timed.workflow
    def mail(name: str) -> str:
        return name

    mail.opts(idempotency_key="k", reuse="after_end").submit("first")
    hand.work_all()
    other = Tally(url, clock=clock)

    @other.workflow(name="mail")
    def mail_elsewhere(name: str) -> str:
        return name

    elsewhere = SteppedWorker(other, clock)
    keyed = mail_elsewhere.opts(idempotency_key="k", reuse="after_end")
    lock, made, taking = PostgresBatch.lock, list[str](), threading.Event()

    def lock_late(batch, job_id):
        if not taking.is_set() and len(made) < 15:
            taking.set()
            made.append(keyed.submit(f"other {len(made)}").id)
            elsewhere.work_all()
            taking.clear()
        lock(batch, job_id)

    monkeypatch.setattr(PostgresBatch, "lock", lock_late)
    job = mail.opts(idempotency_key="k", reuse="after_end").submit("last")
    hand.work_all()
    assert (len(made), job.created, job.result()) == (15, True, "last")
    assert check_books(timed) == []
    other.close()
