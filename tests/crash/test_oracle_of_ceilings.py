"""A job that ended because a ledger was full has no closer: the oracle and the audit call that right."""

from __future__ import annotations

import pytest

from tallystick import Tally, again, wait
from tallystick.clock import VirtualClock
from tallystick.engine.audit import audit
from tallystick.testing.stepping import SteppedWorker
from tests.crash.sweep import books, obligations
from tests.crash.sweep.place import Place

FULL = {"waits": ("steps", "ledger", 1_100_099_999_999), "turns": ("jobs", "root_ledger", 1_111_099_999_999)}


@pytest.fixture(params=list(FULL))
def escalated(request, tmp_path):
    """A place with one job, whose ledger was full when a message came to it, and what the audit says."""
    place, clock = Place(tmp_path), VirtualClock()
    app = Tally(f"sqlite:///{place.database}", clock=clock)
    hand = SteppedWorker(app, clock)

    @app.workflow
    def waits(label: str) -> None:
        wait("go", bool)

    @app.workflow
    def turns(label: str) -> None:
        again(label)

    job = {"waits": waits, "turns": turns}[request.param].submit("one")
    hand.work()
    table, column, ledger = FULL[request.param]
    with app.transaction() as db:
        db.execute(f"update {table} set {column} = {ledger}")
    job.send("go", True)
    assert hand.work() == "idle"
    assert job.row().error_code == "LEDGER_CEILING"
    found = audit(app.runtime().store).findings
    app.close()
    return books.read(place), found


def test_a_job_that_a_full_ledger_ended_is_not_broken(escalated):
    found, audited = escalated
    (job,) = found.jobs
    assert not any(message.closes for message in (job.start, *found.messages[job.job_id]))
    assert list(obligations.check(job, found)) == []
    # All that the audit misses are the messages of which a test made the digits, and not a store.
    assert {finding.check for finding in audited} == {"digits"}
    assert all("99999999, and " in f.message or " revisions" in f.message for f in audited), audited


def test_a_job_that_ended_without_a_closer_for_another_reason_is_broken(escalated):
    found, _audited = escalated
    (job,) = found.jobs
    (wrong,) = obligations.check(job._replace(error_code="ERROR"), found)
    assert "with the closers []" in wrong
