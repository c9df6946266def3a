"""Leases are renewed beside the flushes: what waits for a lock of others costs no lease."""

from __future__ import annotations

import threading

import psycopg

from tallystick import Tally, wait
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject

SECONDS = 20


def test_a_flush_that_waits_for_a_lock_keeps_no_lease_from_being_renewed(subject: PostgresSubject) -> None:
    app = Tally(subject.url)
    begun, go_on, finish = threading.Event(), threading.Event(), threading.Event()

    @app.workflow
    def stuck() -> int:
        begun.set()
        go_on.wait(SECONDS)
        return wait("never", int)

    @app.step
    def work() -> int:
        finish.wait(SECONDS)
        return 1

    @app.workflow
    def runs() -> int:
        return work()

    def ends(job_id: str) -> int:
        query = "SELECT lease_expires_at FROM attempts WHERE job_id = %s"
        ((at,),) = subject.by_hand.execute(query, [job_id]).fetchall()
        return int(at)

    with (
        app.worker(lease="1s"),
        psycopg.connect(subject.dsn, options=f"-c search_path={subject.schema}") as other,
    ):
        waits, job = stuck.submit(), runs.submit()
        assert begun.wait(SECONDS)
        other.execute("SELECT 1 FROM jobs WHERE job_id = %s FOR UPDATE", [waits.id])
        go_on.set()
        wait_until(lambda: app.runtime().committer._stragglers, "its end waits for the row")
        for _ in range(3):
            before = ends(job.id)
            wait_until(lambda before=before: ends(job.id) > before, "the lease is renewed")
        assert app.runtime().committer._stragglers, "it waits still"
        other.rollback()
        finish.set()
        assert job.result(SECONDS) == 1
        waits.cancel()
    app.close()


def test_a_renewal_in_the_moment_of_an_ending_refuses_nothing(subject: PostgresSubject) -> None:
    """Two renewals in a row, each under way when the ending of a segment comes to the row of its attempt."""
    app = Tally(subject.url)
    begun, go_on = threading.Event(), threading.Event()

    @app.workflow
    def waits() -> int:
        begun.set()
        go_on.wait(SECONDS)
        return wait("word", int)

    def connect() -> psycopg.Connection:
        return psycopg.connect(subject.dsn, options=f"-c search_path={subject.schema}")

    def waiting() -> set[int]:
        query = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return {pid for (pid,) in subject.by_hand.execute(query).fetchall()}

    row = "job_id = %s AND status = 'IN_PROGRESS'"
    renew = f"UPDATE attempts SET lease_expires_at = lease_expires_at + 1 WHERE {row}"
    with app.worker(lease="5m"), connect() as first, connect() as second:
        job = waits.submit()
        assert begun.wait(SECONDS)
        first.execute(renew, [job.id])
        go_on.set()
        wait_until(waiting, "the ending waits for the first renewal")
        ending = waiting()
        renewing = threading.Thread(target=second.execute, args=(renew, [job.id]))
        renewing.start()
        wait_until(lambda: waiting() - ending, "the second renewal waits too")
        first.commit()
        wait_until(lambda: not renewing.is_alive(), "the second renewal is under way")
        wait_until(lambda: waiting() or not attempts_open(subject), "it ends")
        second.commit()
        renewing.join()
        job.send("word", 7)
        assert job.result(SECONDS) == 7
    app.close()


def attempts_open(subject: PostgresSubject) -> bool:
    """Tell whether an attempt is under way."""
    query = "SELECT count(*) FROM attempts WHERE status = 'IN_PROGRESS'"
    ((count,),) = subject.by_hand.execute(query).fetchall()
    return bool(count)
