"""`verify` beside workers: silent about books that move, loud about a change, and in nobody's way."""

from __future__ import annotations

import random
from contextlib import closing

import apsw
import psycopg
import pytest

from tallystick import gather
from tallystick.engine.audit import check_job
from tallystick.engine.audit.whole_store import verify
from tests.app.kinds_of_jobs import Kinds
from tests.app.programs.busy_books import acts, app, fails, loop, parent, plain, several, shares, waits
from tests.crew import Crew
from tests.patience import wait_until

WORKERS, KILLS, ROUNDS_AT_LEAST = 2, 3, 8
CHANGED = "a column that was submitted is not what the first fact says"


@pytest.fixture
def opened(url):
    app.bind(url)
    yield app
    app.close()


def some(n: int, cancelled: random.Random) -> list:
    """Submit a job of each kind, answer one, and ask one to end."""
    jobs = [plain.submit(n), waits.submit(n), parent.submit(5), loop.submit(10 * n + 1), acts.submit(10 * n)]
    jobs[1].send("go", n)
    extra = waits.submit(n) if cancelled.random() < 0.5 else parent.submit(20)
    extra.cancel()
    return [*jobs, extra, *some_that_move(n)]


def some_that_move(n: int) -> list:
    """Submit jobs that are put off, replaced, held and resumed, share a key or a limit, or wait beside."""
    delayed = plain.opts(delay="300ms", deadline="1h").submit(n)
    shared = [shares.opts(limit_key=str(n % 2)).submit(n) for _ in range(2)]
    for value in (n, n + 1):
        replaced = plain.opts(idempotency_key=f"debounced-{n}", debounce="200ms").submit(value)
    beside, failing = several.submit(n), fails.submit(n)
    beside.send("a", n)
    for job in (beside, failing, delayed):
        job.pause(by="ann")
        job.resume(by="ann")
    return [delayed, *shared, replaced, beside, failing]


def put_aside(url: str, job_id: str) -> None:
    """Change a column of a job that has ended; no guard speaks of it."""
    statement = f"update jobs set queue = 'other' where job_id = '{job_id}'"
    if url.startswith("sqlite"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as db:
            db.set_busy_timeout(30_000)
            db.execute(statement)
        return
    address, _, options = url.partition("?")
    schema = dict(part.split("=", 1) for part in options.split("&"))["schema"]
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(f"set search_path = {schema}")
        db.execute(statement)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_found_in_books_that_move_but_what_was_changed_meanwhile(opened, url):
    """Workers run and are killed; every look is silent until somebody changes a job that has ended."""
    store, chance = opened.runtime().store, random.Random(3)
    jobs, rounds, kills = [], 0, 0
    crew = Crew(WORKERS, "tests.app.programs.busy_books", url)
    try:
        while rounds < ROUNDS_AT_LEAST or kills < KILLS:
            jobs += some(rounds, chance)
            assert verify(store).findings == []
            rounds += 1
            if rounds % 3 == 0 and kills < KILLS:
                crew.kill(chance)
                kills += 1
        ended = jobs[0]
        wait_until(lambda: ended.state() == "SUCCEEDED")
        put_aside(url, ended.id)
        jobs += some(rounds, chance)
        assert [(found.job_id, found.message) for found in verify(store).findings] == [(ended.id, CHANGED)]
        for job in jobs:
            wait_until(lambda job=job: job.row().completed_at is not None, f"the end of {job.id}")
    finally:
        crew.dismiss()
    assert [found.job_id for found in verify(store).findings] == [ended.id]


@pytest.fixture
def lived(timed, hand, clock, monkeypatch):
    Kinds(timed, hand, clock, monkeypatch).live()
    return timed


def between_reads(inspection, look) -> None:
    """Call a function whenever a statement of the check has returned its rows."""
    rows = inspection.rows

    def read(*given):
        found = rows(*given)
        look()
        return found

    inspection.rows = read


def test_no_look_stays_open_between_two_statements(lived, url, monkeypatch):
    """So a check of any length keeps neither a log from shrinking nor vacuum from its work."""
    store = lived.runtime().store
    inspection, looks = store.inspect(), []
    monkeypatch.setattr(store, "inspect", lambda: inspection)
    if url.startswith("sqlite"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as db:

            def shrink() -> None:
                db.execute("create table if not exists grown (n); insert into grown values (1)")
                ((busy, *_pages),) = db.execute("pragma wal_checkpoint(truncate)")
                looks.append(busy)

            between_reads(inspection, shrink)
            assert verify(store).findings == []
        assert set(looks) == {0}
    else:
        with psycopg.connect(url.partition("?")[0], autocommit=True) as db:

            def holders() -> None:
                query = (
                    "select count(*) from pg_stat_activity where backend_xmin is not null "
                    "and pid <> pg_backend_pid() and datname = current_database() and state <> 'active'"
                )
                looks.append(db.execute(query).fetchone()[0])

            between_reads(inspection, holders)
            assert verify(store).findings == []
        assert set(looks) == {0}
    assert len(looks) > 300


def test_a_family_that_moved_is_read_again(timed, hand):
    """A child ends between two reads of its parent: what was seen of both sides is not believed."""

    @timed.workflow
    def child(n: int) -> int:
        return n

    @timed.workflow
    def parent() -> int:
        return sum(gather(child.child(1), child.child(2)))

    job = parent.submit()
    hand.work()
    inspection = timed.runtime().store.inspect()
    open_children, counted = inspection.open_children, []

    def moved(job_id: str) -> dict[str, int]:
        if not counted:
            assert hand.work() == "EndJob"
        counted.append(open_children(job_id))
        return counted[-1]

    inspection.open_children = moved
    checked = check_job(inspection, inspection.book(job.id), inspection.lease_clock())
    assert (checked.findings, [sum(count.values()) for count in counted]) == ([], [1, 1])
