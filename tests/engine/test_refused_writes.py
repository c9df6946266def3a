"""What the database refuses in a segment is told with its statement and charged to nobody; the job is held.

Each refusal is a real one: a trigger that the test adds to the real database.
"""

from __future__ import annotations

import logging

import pytest

from tallystick import Tx, aio, gather, wait
from tallystick.engine.sweep import sweep
from tallystick.testing.stepping import Death, check_books
from tests.patience import wait_until

SECONDS = 8


def asked(app, *statements: str) -> None:
    with app.transaction() as db:
        for statement in statements:
            db.execute(statement)


def refuse(app, table: str, verb: str, when: str) -> None:
    """Let the database refuse rows of one of its tables."""
    if app.url.startswith("sqlite"):
        refusing = "BEGIN SELECT RAISE(ABORT, 'NOT HERE'); END"
        asked(app, f"CREATE TRIGGER refuses BEFORE {verb} ON {table} WHEN {when} {refusing}")
    else:
        body = "$$ BEGIN RAISE EXCEPTION 'NOT HERE'; END $$"
        asked(app, f"CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS {body}")
        each_row = f"FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refuses()"
        asked(app, f"CREATE TRIGGER refuses BEFORE {verb} ON {table} {each_row}")


def allow(app, table: str) -> None:
    asked(app, "DROP TRIGGER refuses" + ("" if app.url.startswith("sqlite") else f" ON {table}"))


# Which rows are refused, and the statements that write them, in lists or alone, on one store or the other.
STEP = ("insert_step", "insert_steps", "insert_planned_steps", "end_jobs")
CASES = {
    "step": ("steps", "INSERT", "NEW.name = 'one'", STEP),
    "last": ("steps", "INSERT", "NEW.name = 'one'", STEP),
    "tx": ("steps", "INSERT", "NEW.name = 'note'", STEP),
    "wait": ("steps", "INSERT", "NEW.name = 'go'", ("insert_activity", "move")),
    "children": ("jobs", "INSERT", "NEW.parent_job_id IS NOT NULL", ("insert_child", "insert_children")),
    "end": ("jobs", "UPDATE", "NEW.state = 'SUCCEEDED'", ("end_job", "end_jobs", "move_job", "move")),
}


def sync_flows(app) -> dict:
    @app.step
    def one() -> int:
        return 1

    @app.step
    def two() -> int:
        return 1

    @app.tx
    def note(db: Tx) -> int:
        return 2

    @app.workflow
    def child() -> int:
        return 1

    @app.workflow(attempts=1)
    def step() -> int:
        try:
            return one() + two()
        except Exception:  # noqa: BLE001 (a workflow that would hide the refusal)
            return -1

    @app.workflow(attempts=1)
    def last() -> int:
        return one() + 1

    @app.workflow(attempts=1)
    def tx() -> int:
        return note()

    @app.workflow(attempts=1, name="wait")
    def signal() -> int:
        return wait("go", int)

    @app.workflow(attempts=1)
    def children() -> int:
        return sum(gather(child.child(), child.child()))

    @app.workflow(attempts=1)
    def end() -> int:
        return 2

    return {"step": step, "last": last, "tx": tx, "wait": signal, "children": children, "end": end}


def async_flows(app) -> dict:
    @app.step
    async def one() -> int:
        return 1

    @app.step
    async def two() -> int:
        return 1

    @app.tx
    def note(db: Tx) -> int:
        return 2

    @app.workflow
    async def child() -> int:
        return 1

    @app.workflow(attempts=1)
    async def step() -> int:
        try:
            return await one() + await two()
        except Exception:  # noqa: BLE001 (a workflow that would hide the refusal)
            return -1

    @app.workflow(attempts=1)
    async def last() -> int:
        return await one() + 1

    @app.workflow(attempts=1)
    async def tx() -> int:
        return await note.aio()

    @app.workflow(attempts=1, name="wait")
    async def signal() -> int:
        return await aio.wait("go", int)

    @app.workflow(attempts=1)
    async def children() -> int:
        return sum(await aio.gather(child.child(), child.child()))

    @app.workflow(attempts=1)
    async def end() -> int:
        return 2

    return {"step": step, "last": last, "tx": tx, "wait": signal, "children": children, "end": end}


@pytest.mark.parametrize("flows", [sync_flows, async_flows], ids=["sync", "async"])
@pytest.mark.parametrize("case", CASES)
def test_a_refusal_holds_the_job_and_is_told_with_its_statement(app, caplog, case, flows):
    table, verb, when, statements = CASES[case]
    flow = flows(app)[case]
    refuse(app, table, verb, when)
    with caplog.at_level(logging.ERROR), app.worker():
        job = flow.submit()
        wait_until(lambda: job.row().hold == "REFUSED", "the job is held")
        told = [record for record in caplog.records if getattr(record, "action", "") == "segment.refused"]
        assert [record.job_id for record in told] == [job.id], "told once"
        assert told[0].statement in statements
        assert "NOT HERE" in told[0].getMessage()
        row = job.row()
        assert (row.state, row.error_code) == ("IN_PROGRESS", None)
        assert told[0].statement in row.hold_reason
        # Mended, it goes on; its one attempt was not charged.
        allow(app, table)
        job.resume()
        if case == "wait":
            job.send("go", 2)
        assert job.result(SECONDS) == 2
    with app.transaction() as db:
        charged = db.execute(f"SELECT sum(charged) FROM attempts WHERE job_id = '{job.id}'")
    assert [int(value) for (value,) in charged] == [0]
    assert check_books(app) == []


def test_a_job_whose_reclaim_is_refused_is_held_and_the_others_are_reclaimed(timed, hand, caplog):
    dead = []

    @timed.workflow(attempts=1)
    def poison() -> None:
        raise Death

    @timed.workflow
    def flow(n: int) -> int:
        if n not in dead:
            dead.append(n)
            raise Death
        return n

    lost, jobs = poison.submit(), [flow.submit(n) for n in range(2)]
    for _ in range(3):
        assert hand.work() == "died"
    refuse(timed, "jobs", "UPDATE", "NEW.state = 'FAILED_FINAL'")
    with caplog.at_level(logging.ERROR):
        assert hand.expire() == 3
    assert lost.row().hold == "REFUSED"
    assert "NOT HERE" in lost.row().hold_reason
    assert [record.job_id for record in caplog.records] == [lost.id]
    hand.work_all()
    assert [job.result(1) for job in jobs] == [0, 1]
    allow(timed, "jobs")
    lost.resume()
    assert hand.work() == "died"
    assert hand.expire() == 1
    assert lost.row().error_code == "ATTEMPTS_SPENT"


def test_a_job_that_can_not_even_be_held_keeps_no_other_from_its_turn(timed, hand, caplog):
    """Every change of its attempt is refused: it is told once, and looked at again in every sweep."""

    @timed.workflow
    def flow() -> int:
        raise Death

    stuck, job = flow.submit(), flow.submit()
    for _ in range(2):
        assert hand.work() == "died"
    refuse(timed, "attempts", "UPDATE", f"NEW.job_id = '{stuck.id}'")
    told: list[str] = []

    def is_new(error: BaseException) -> bool:
        told.append(str(error))
        return told.count(told[-1]) == 1

    hand.clock.advance(10_000)
    where = (timed.runtime().store, timed.runtime().committer)
    with caplog.at_level(logging.ERROR):
        assert sweep(*where, tell=is_new) == 1
        assert sweep(*where, tell=is_new) == 0
    assert len(caplog.records) == 1
    assert (stuck.row().hold, job.row().ready_at is not None) == (None, True)


# How a claim may be refused: of a job that was never claimed, or of one that a message wakes.
CLAIMS = {
    "its attempt": ("attempts", "INSERT", "NEW.job_id = '{}'", ("insert_attempt", "claim_jobs")),
    "its row": ("jobs", "UPDATE", "NEW.job_id = '{}' AND NEW.attempt > OLD.attempt", ("claim_jobs",)),
    "its fact": (
        "events",
        "INSERT",
        "NEW.job_id = '{}' AND NEW.type = 'claim'",
        ("insert_event", "claim_jobs"),
    ),
}


def charges(app, job) -> int:
    with app.transaction() as db:
        ((charged,),) = db.execute(
            f"SELECT coalesce(sum(charged), 0) FROM attempts WHERE job_id = '{job.id}'"
        )
    return int(charged)


@pytest.mark.parametrize("case", CLAIMS)
def test_a_job_whose_claim_is_refused_is_held_and_the_others_are_claimed(app, caplog, case):
    table, verb, when, statements = CLAIMS[case]

    @app.workflow(attempts=1)
    def flow(n: int) -> int:
        return n

    jobs = [flow.submit(n) for n in range(5)]
    refuse(app, table, verb, when.format(jobs[1].id))
    with caplog.at_level(logging.WARNING), app.worker(concurrency=2):
        # One of the first two is refused: those behind them are claimed by the two slots all the same.
        assert [job.result(SECONDS) for job in (jobs[0], *jobs[2:])] == [0, 2, 3, 4]
        wait_until(lambda: jobs[1].row().hold == "REFUSED", "the job is held")
        told = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert [(record.action, record.job_id) for record in told] == [("claim.refused", jobs[1].id)]
        assert told[0].statement in statements
        assert "NOT HERE" in told[0].getMessage()
        assert told[0].statement in jobs[1].row().hold_reason
        assert (jobs[1].row().state, jobs[1].row().attempt) == ("QUEUED", 0)
        allow(app, table)
        jobs[1].resume()
        assert jobs[1].result(SECONDS) == 1
    assert charges(app, jobs[1]) == 0
    assert check_books(app) == []


def test_a_woken_job_whose_claim_is_refused_is_held_and_the_others_go_on(app, caplog):
    @app.workflow(attempts=1)
    def flow() -> int:
        return wait("go", int)

    jobs = [flow.submit() for _ in range(3)]
    with app.worker(concurrency=1):
        wait_until(lambda: all(job.history()[-1].name == "suspend" for job in jobs), "all of them wait")
    refuse(app, "messages", "UPDATE", f"NEW.job_id = '{jobs[0].id}' AND NEW.ledger > 0")
    for n, job in enumerate(jobs):
        job.send("go", n)
    with caplog.at_level(logging.ERROR), app.worker(concurrency=3):
        assert [job.result(SECONDS) for job in jobs[1:]] == [1, 2]
        wait_until(lambda: jobs[0].row().hold == "REFUSED", "the job is held")
        assert [record.job_id for record in caplog.records if record.action == "claim.refused"] == [
            jobs[0].id
        ]
        allow(app, "messages")
        jobs[0].resume()
        assert jobs[0].result(SECONDS) == 0
    assert [charges(app, job) for job in jobs] == [0, 0, 0]
    assert check_books(app) == []


def test_a_job_that_can_neither_be_claimed_nor_held_keeps_no_other_from_its_turn(app, caplog):
    """Every change of its row is refused: it is told once, and stays due."""

    @app.workflow
    def flow(n: int) -> int:
        return n

    stuck, *jobs = [flow.submit(n) for n in range(4)]
    refuse(app, "jobs", "UPDATE", f"NEW.job_id = '{stuck.id}'")
    with caplog.at_level(logging.WARNING), app.worker(concurrency=2):
        assert [job.result(SECONDS) for job in jobs] == [1, 2, 3]
        assert flow.submit(4).result(SECONDS) == 4
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [(record.action, record.job_id) for record in told] == [("claim.refused", stuck.id)]
    assert (stuck.row().state, stuck.row().hold) == ("QUEUED", None)
