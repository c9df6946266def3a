"""Columns that were once free, and what tells of each now."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick import Key, gather, sleep, wait
from tallystick.testing.stepping import check_books, check_store, die
from tests.cut_spawn import cut_spawn, small_spawns
from tests.engine.audit.tampering import Books


@pytest.fixture
def books(timed, url):
    def opened() -> Books:
        assert check_store(timed) == []
        made.append(Books(url, timed.runtime().store.inspect()))
        return made[-1]

    made: list[Books] = []
    yield opened
    for each in made:
        each.close()


def found(timed, books: Books, statement: str, undo: str) -> list[str]:
    """What is found between a change and its undoing."""
    books.db.run(statement)
    messages = [finding.message for finding in check_books(timed)]
    books.db.run(undo)
    assert check_books(timed) == []
    return messages


def test_the_fact_of_a_group_says_when_it_is_closed(timed, hand, books):
    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def parent() -> int:
        return len(gather(child.child(1), child.child(2)))

    job = parent.submit()
    hand.work_all()
    assert job.state() == "SUCCEEDED"
    db = books()
    change = "update steps set payload = {} where kind = 'group'"
    (message, *_others) = found(timed, db, change.format("'fail_fast'"), change.format("null"))
    assert "was changed after it was written" in message
    change = "update steps set threshold = {} where kind = 'group'"
    assert found(timed, db, change.format(1), change.format(0))


def test_a_job_that_is_put_off_or_never_due_is_found(timed, hand, clock, books):
    @timed.workflow
    def waits() -> None:
        wait("go", bool, timeout="1h")

    @timed.workflow
    def sleeps() -> None:
        sleep("2h")

    queued, delayed = waits.submit(), waits.opts(delay=timedelta(minutes=5)).submit()
    hand.work()
    waiting = queued
    asleep = sleeps.submit()
    hand.work()
    clock.advance(1_000)
    woken = waits.submit()
    hand.work()
    clock.advance(1_000)
    woken.send("go", True)
    db = books()
    for job in (waiting, delayed, asleep, woken):
        due = job.row().ready_at
        assert due is not None
        for value in ("null", str(due + 60_000), str(due - 1), "0"):
            change = f"update jobs set ready_at = {{}} where job_id = '{job.id}'"
            (message,) = found(timed, db, change.format(value), change.format(due))
            assert "its facts and messages say otherwise" in message


def test_an_attempt_has_the_worker_the_message_and_the_beginning_of_its_claim(timed, hand, clock, books):
    @timed.effect(key="charge:{n}")
    def charge(key: Key, n: int) -> int:
        return n

    @timed.workflow
    def pays(n: int) -> int:
        wait("go", bool)
        return charge(n)

    job = pays.submit(1)
    clock.advance(500)
    hand.work()
    job.send("go", True)
    hand.work()
    assert job.state() == "SUCCEEDED"
    db, of = books(), f"where job_id = '{job.id}'"
    born = job.row().created_at
    for column, value, before, which in (
        ("lease_owner", "'by hand'", "'stepped'", "unit <> ''"),
        ("guid", "''", "'start'", "unit = '' and attempt = 1"),
        ("started_at", born, born + 500, "unit = '' and attempt = 1"),
        ("charged", 2, 0, "unit = '' and attempt = 1"),
    ):
        change = f"update attempts set {column} = {{}} {of} and {which}"
        assert found(timed, db, change.format(value), change.format(before)), column


def test_the_start_of_a_cancelled_job_has_the_digits_that_its_attempt_left(timed, hand, clock, books):
    @timed.effect(key="charge:{n}", timeout="2s")
    def charge(key: Key, n: int) -> int:
        die()

    @timed.workflow
    def pays(n: int) -> int:
        return charge(n)

    job = pays.submit(1)
    hand.work()
    hand.expire()
    hand.work_all()
    assert job.cancel(force=True) == "CANCELLED"
    db, of = books(), f"where job_id = '{job.id}'"
    ((ledger,),) = db.db.run(f"select start_ledger from jobs {of}")
    assert ledger == 1
    change = f"update jobs set start_ledger = {{}} {of}"
    assert found(timed, db, change.format(11_000_000_001), change.format(1))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("hold", "'PAUSED'"),
        ("head_n", "0"),
        ("root_ledger", "0"),
        ("attempt", "-1"),
        ("start_acked_at", "1"),
        ("updated_at", "1"),
    ],
)
def test_what_the_row_of_an_open_job_says_of_itself(timed, hand, clock, books, column, value):
    """One that is queued, one that waits, and one that a worker has."""

    @timed.workflow
    def waits() -> None:
        wait("go", bool)

    waits.submit()
    hand.work()
    waits.submit()
    hand.claim()
    waits.submit()
    db = books()
    rows = db.db.run(f"select job_id, {column} from jobs")
    for job_id, before in rows:
        change = f"update jobs set {column} = {{}} where job_id = '{job_id}'"
        put_back = "null" if before is None else before
        if before is None and column == "start_acked_at":
            continue  # that it is acknowledged is told by its digits: `test_wrong_values.py`
        assert found(timed, db, change.format(value), change.format(put_back)), job_id


def test_children_that_are_to_end_with_their_parent_are_no_finding(timed, hand):
    """The wish is on their rows alone until the sweep has ended them."""

    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def parent() -> int:
        return len(gather(child.child(1), child.child(2)))

    job = parent.submit()
    hand.work()
    assert job.cancel() == "CANCELLED"
    assert {each.state() for each in job.children()} == {"CANCELLING"}
    assert check_store(timed) == []


def test_an_attempt_that_another_came_before_has_the_instant_of_its_intent(timed, hand, clock, books):
    @timed.effect(key="charge:{order}", timeout="2s")
    def charge(key: Key, order: int) -> str:
        return f"receipt of {key}"

    @timed.workflow
    def flow(order: int) -> str:
        return charge(order)

    jobs = [flow.submit(1)]
    hand.work_all()
    for _ in range(2):
        jobs.append(flow.submit(1))
        clock.advance(10)
        hand.work_all()
    db = books()
    rows = db.db.run("select job_id, finished_at from attempts where reason = 'DUPLICATE_COMMIT'")
    assert {job_id for job_id, _at in rows} == {job.id for job in jobs[1:]}
    change = "update attempts set started_at = {0}, finished_at = {0} where unit <> '' and job_id = '{1}'"
    for (job_id, at), (_other, of_other) in ((rows[0], rows[1]), (rows[1], rows[0])):
        (message,) = found(timed, db, change.format(of_other, job_id), change.format(at, job_id))
        assert f"it began at {of_other}, its intent says {at}" in message


def test_a_group_that_was_dropped_before_it_was_complete_was_entered_as_often_as_written(
    timed, hand, monkeypatch, books
):
    """Its ledger is full, and the job has failed of that; one entry less would be another story."""

    @timed.workflow
    def child() -> None: ...

    @timed.workflow
    def parent() -> None:
        gather(child.child(), child.child())

    small_spawns(monkeypatch.setattr, 1)
    cut_spawn(monkeypatch.setattr, die)
    job = parent.submit()
    assert hand.work() == "died"
    with timed.transaction() as db:
        db.execute("update steps set ledger = 999000000000000, rev = 999")
    hand.expire()
    hand.work_all()
    assert job.row().error_code == "LEDGER_CEILING"
    change = "update steps set ledger = {}"
    for entries in (998, 1):
        told = found(timed, books(), change.format(entries * 10**12), change.format(999 * 10**12))
        assert any("after 1000 revisions" in message for message in told), told
