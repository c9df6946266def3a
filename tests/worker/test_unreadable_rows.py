"""A row that cannot be read stops its own job, where a person can see it, and nobody else's."""

from __future__ import annotations

import threading

import pytest

from tallystick import Retry
from tallystick.testing.stepping import Death, check_books
from tests.patience import let_time_pass, wait_until

SECONDS = 8
# Not JSON, no object, no number, and a number that is none.
UNREADABLE = ["", '{"attempts_m', "[3]", '{"attempts_max":"three"}', '{"attempts_max":0}']


def damaged(app, statement):
    with app.transaction() as db:
        db.execute(statement)


@pytest.mark.parametrize("options", UNREADABLE)
def test_one_job_that_a_sweep_cannot_judge_is_held_and_the_others_are_reclaimed(timed, hand, options):
    dead = []

    @timed.workflow
    def flow(n: int) -> int:
        if n not in dead:
            dead.append(n)
            raise Death
        return n

    jobs = [flow.submit(n) for n in range(3)]
    for _ in jobs:
        assert hand.work() == "died"
    damaged(timed, f"UPDATE jobs SET options = '{options}' WHERE job_id = '{jobs[1].id}'")

    assert hand.expire() == 3
    hand.work_all()
    assert [jobs[n].result(1) for n in (0, 2)] == [0, 2]
    row = jobs[1].row()
    assert row.hold == "MISMATCH"
    assert '"options" cannot be read. Put {"attempts_max":3} there and resume the job' in row.hold_reason
    found = check_books(timed)
    # They are not those of its birth either.
    assert [finding.job_id for finding in found] == [jobs[1].id] * 2
    assert [finding.check for finding in found] == ["birth", "options"]

    damaged(timed, f"UPDATE jobs SET options = '{{\"attempts_max\":3}}' WHERE job_id = '{jobs[1].id}'")
    jobs[1].resume()
    hand.work_all()
    assert jobs[1].result(1) == 1


def test_what_is_missing_in_the_options_has_its_default(timed, hand):
    @timed.workflow
    def flow() -> None:
        raise Death

    job = flow.submit()
    damaged(timed, "UPDATE jobs SET options = '{}'")
    for _ in range(3):
        assert hand.work() == "died"
        hand.expire()
    assert job.row().error_code == "ATTEMPTS_SPENT"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_one_job_whose_past_cannot_be_read_is_held_and_those_claimed_with_it_run(app, url, is_async):
    ready = threading.Event()

    @app.step(retry=Retry(5, first="20s"))
    def fails_at_first() -> int:
        if not ready.is_set():
            raise OSError("not yet")
        return 1

    if is_async:

        @app.workflow
        async def flow() -> int:
            return await fails_at_first.aio()
    else:

        @app.workflow
        def flow() -> int:
            return fails_at_first()

    jobs = [flow.submit() for _ in range(4)]
    with app.worker():
        wait_until(lambda: all(job.history()[-1].name == "release" for job in jobs), "all wait to try again")
    ready.set()
    guard = "events_guard" if url.startswith("sqlite") else "events_guard ON events"
    damaged(app, f"DROP TRIGGER {guard}")
    damaged(app, f"UPDATE events SET payload = '{{}}' WHERE type = 'try' AND job_id = '{jobs[0].id}'")
    damaged(app, "UPDATE jobs SET ready_at = 1")
    with app.worker(concurrency=4):
        assert [job.result(SECONDS) for job in jobs[1:]] == [1, 1, 1]
        wait_until(lambda: jobs[0].row().hold == "MISMATCH", "the damaged one is held")
        # No slot was lost over it.
        assert [job.result(SECONDS) for job in [flow.submit() for _ in range(8)]] == [1] * 8
    assert "cannot be read" in jobs[0].row().hold_reason


@pytest.mark.parametrize("broken", ["expired", "next_end", "pulse"])
def test_a_role_that_fails_keeps_no_other_from_its_turn(app, monkeypatch, broken):
    """Leases are renewed, what is overdue ends, and lost jobs are taken over, whatever else cannot be."""
    began, lost = threading.Event(), []

    @app.workflow
    def sleeps() -> None:
        began.set()
        let_time_pass(3)

    def fails(*_arguments: object) -> None:
        lost.append(1)
        raise ValueError("a row that nobody can read")

    monkeypatch.setattr(app.runtime().store, broken, fails)
    # Long enough for a renewal to come late on a busy machine.
    with app.worker(lease=1.5):
        job = sleeps.submit()
        assert began.wait(SECONDS)
        if broken == "expired":
            job.cancel(grace="1ms")
            wait_until(lambda: job.state() == "CANCELLED", "its grace is over")
        else:
            assert job.result(SECONDS) is None
            assert [event.name for event in job.history()] == ["submit", "claim", "return"]
        wait_until(lambda: lost, "the broken part had its turn")
