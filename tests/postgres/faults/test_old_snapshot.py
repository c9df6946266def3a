"""P09: an old snapshot keeps vacuum from its work; claims do not pay for every job that passed since."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tallystick.clock import SystemClock
from tallystick.engine.submission import Submission, submit_job
from tallystick.ids import SystemIds
from tallystick.store.api import ClaimedJob, ClaimJobs
from tallystick.store.postgres import inspection
from tallystick.store.postgres.store import PostgresStore
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject

PASSED = 20_000
SLOTS = 16
CLAIMS = 100
LONG_AGO = 5
FILL = """
INSERT INTO jobs (job_id, state, handler, payload, created_at, updated_at, ready_at)
SELECT 'passed-' || lpad(n::text, 9, '0'), 'QUEUED', 'pay', '{}', 1, 1, n FROM generate_series(1, %s) AS n
"""
ids = SystemIds()
clock = SystemClock()


@pytest.fixture
def store(subject: PostgresSubject) -> Iterator[PostgresStore]:
    store = subject.open(clock)
    yield store
    store.close()


@pytest.fixture
def old_snapshot(subject: PostgresSubject) -> Iterator[int]:
    """Somebody who has begun to look at everything; then many jobs pass, of which nothing can be vacuumed."""
    with psycopg.connect(subject.dsn, application_name="a report", autocommit=True) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM pg_class")
        subject.by_hand.execute("SET session_replication_role = 'replica'")
        subject.by_hand.execute(FILL, [PASSED])
        subject.by_hand.execute("UPDATE jobs SET state = 'IN_PROGRESS', attempt = 1, ready_at = NULL")
        subject.by_hand.execute("VACUUM jobs")
        yield reader.info.backend_pid


def submit(store: PostgresStore, number: int) -> list[str]:
    jobs = ids.many(number)
    like = Submission(handler="pay", payload="{}")
    store.apply([(submit_job(like, job_id, clock.wall_ms()),) for job_id in jobs])
    return jobs


def request(limit: int = SLOTS) -> ClaimJobs:
    return ClaimJobs("worker", ("default",), frozenset({("pay", "")}), limit, 600_000, ids.new)


def claim(store: PostgresStore) -> list[ClaimedJob]:
    (found,) = store.apply([(request()._replace(lease_ids=ids.new),)])
    assert isinstance(found, list)
    return found


def entries_read(subject: PostgresSubject, store: PostgresStore) -> int:
    """Return how many entries of the queue's index were read so far, dead ones too."""
    assert store._flush._wire is not None
    store._flush._wire.connection.execute(b"SELECT pg_stat_force_next_flush()")
    store._flush._wire.connection.execute(b"SELECT 1")
    query = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = %s AND indexrelname = %s"
    ((read,),) = subject.by_hand.execute(query, [subject.schema, "jobs_to_claim"]).fetchall()
    return int(read)


def test_claims_of_a_lean_queue_do_not_step_over_every_job_that_passed(
    subject: PostgresSubject, store: PostgresStore, old_snapshot: int
) -> None:
    """One job at a time for many free slots: every search falls short, and yet few look at everything."""
    assert claim(store) == []
    before = entries_read(subject, store)
    assert before >= PASSED, "the first look steps over everything: nothing was vacuumed"
    for _ in range(CLAIMS):
        (job_id,) = submit(store, 1)
        assert [job.fence.job_id for job in claim(store)] == [job_id]
    assert entries_read(subject, store) - before < CLAIMS * PASSED / 4


def test_claims_of_a_busy_queue_begin_where_the_last_one_ended(
    subject: PostgresSubject, store: PostgresStore, old_snapshot: int
) -> None:
    submit(store, CLAIMS * SLOTS)
    before = entries_read(subject, store)
    for _ in range(CLAIMS):
        assert len(claim(store)) == SLOTS
    assert entries_read(subject, store) - before < CLAIMS * PASSED / 4


def test_a_job_that_appears_late_is_found_behind_everything_that_passed(
    subject: PostgresSubject, store: PostgresStore, old_snapshot: int
) -> None:
    """A search that began behind it is made again from the beginning."""
    for _ in range(3):
        claim(store)
    (late,) = submit(store, 1)
    subject.by_hand.execute("UPDATE jobs SET ready_at = %s WHERE job_id = %s", [LONG_AGO, late])
    pulse = store.pulse()

    found: list[str] = []

    def woken_and_found() -> bool:
        nonlocal pulse
        if store.pulse() != pulse:
            pulse = store.pulse()
            found.extend(job.fence.job_id for job in claim(store))
        return bool(found)

    wait_until(woken_and_found, "the job that appeared late")
    assert found == [late]


def test_the_doctor_names_who_keeps_vacuum_from_its_work(
    store: PostgresStore, old_snapshot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "_OLDEST_TRANSACTION_SECONDS", -1)

    def named() -> bool:
        warnings = " ".join(store.inspect().health().warnings)
        return f"pid {old_snapshot}, a report" in warnings and "vacuum" in warnings

    # Tests beside this one may have older transactions, but they end.
    wait_until(named, "a warning that names the holder of the snapshot")
    assert named()
