"""Where a search of the queue begins: behind what was claimed, and yet nobody is forgotten there."""

from __future__ import annotations

import threading

from tallystick.clock import SystemClock
from tallystick.store.api import Await, Fact, Wait
from tallystick.store.postgres.claiming.claim_cursor import MARGIN_MS, WHOLE_SECONDS
from tallystick.testing.conformance.drafts import claim, claimed, done, finish, held_job, submission
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject

LONG_AGO = 5


def submitted(subject: PostgresSubject, number: int) -> list[str]:
    """Submit jobs, each much later than the one before, and return their identifiers."""
    jobs = []
    for _ in range(number):
        wish = submission(subject.clock)
        done(subject.store, wish)
        jobs.append(wish.job.job_id)
        subject.clock.advance(ms=10 * MARGIN_MS)
    return jobs


def appears_late(subject: PostgresSubject, job_id: str) -> None:
    """Make a job look as if its submitter had taken very long to commit."""
    subject.by_hand.execute("UPDATE jobs SET ready_at = %s WHERE job_id = %s", [LONG_AGO, job_id])


def a_second_passes(subject: PostgresSubject) -> None:
    subject.clock.advance(ms=int(WHOLE_SECONDS * 1000))


def found(subject: PostgresSubject, limit: int = 1) -> list[str]:
    return [job.fence.job_id for job in claimed(subject.store, claim(limit))]


def test_a_search_that_left_slots_empty_tells_its_worker_when_to_search_again(
    subject: PostgresSubject,
) -> None:
    one, two, three = submitted(subject, 3)
    assert found(subject) == [one]
    appears_late(subject, three)
    assert found(subject, 2) == [two]
    cursor = subject.store._cursor
    assert not cursor.look_is_due()
    a_second_passes(subject)
    assert cursor.look_is_due()
    assert not cursor.look_is_due(), "it is said once"
    assert found(subject, 2) == [three]
    a_second_passes(subject)
    assert not cursor.look_is_due(), "that search saw the whole queue"


def test_a_worker_that_has_seen_the_whole_queue_is_left_alone(subject: PostgresSubject) -> None:
    """What owes nothing is not searched for again before somebody writes."""
    for _ in range(3):
        assert found(subject, 2) == []
        a_second_passes(subject)
        assert not subject.store._cursor.look_is_due()


def test_a_job_before_the_cursor_waits_a_second_at_most_while_others_come(subject: PostgresSubject) -> None:
    one, two, three, four, late = submitted(subject, 5)
    assert found(subject) == [one]
    appears_late(subject, late)
    assert found(subject) == [two]
    assert found(subject) == [three]
    a_second_passes(subject)
    assert found(subject) == [late]
    assert found(subject) == [four]


def test_a_lower_priority_behind_a_burst_is_hidden_for_a_second_at_most(subject: PostgresSubject) -> None:
    """The search that found the burst has not looked at what comes after it."""
    low = submission(subject.clock)
    done(subject.store, low._replace(job=low.job._replace(priority=9)))
    subject.clock.advance(ms=10 * MARGIN_MS)
    one, two = submitted(subject, 2)
    assert found(subject) == [one]
    assert found(subject, 2) in ([two], [two, low.job.job_id])
    a_second_passes(subject)
    found(subject, 2)
    assert [row["attempt"] for row in subject.rows("jobs")] == [1, 1, 1]


def test_what_a_lost_flush_had_claimed_is_found_again(subject: PostgresSubject) -> None:
    one, two = submitted(subject, 2)
    assert found(subject) == [one]
    assert found(subject) == [two]
    # As if the transaction of the second claim had been rolled back.
    subject.by_hand.execute("SET session_replication_role = 'replica'")
    subject.by_hand.execute("DELETE FROM attempts WHERE job_id = %s", [two])
    appears_late(subject, two)
    assert found(subject) == []
    a_second_passes(subject)
    assert found(subject) == [two]


def test_the_oldest_comes_first_when_nobody_was_late(subject: PostgresSubject) -> None:
    jobs = submitted(subject, 6)
    assert [job for _ in jobs for job in found(subject)] == jobs


def test_a_search_behind_a_flush_that_waited_leaves_an_idle_worker_alone(subject: PostgresSubject) -> None:
    """However long a search took, or what it travelled with: with nothing to do nobody is told to look."""
    clock = SystemClock()
    store = subject.open(clock)
    one, two, other = held_job(store, clock), held_job(store, clock), held_job(store, clock)
    request = claim(2)
    fact = Fact(other.chain, "suspend", clock.wall_ms(), 1, "{}")
    wait = Await(other.fence, "start", 0, (Wait("wait", "go", 1, None),), fact)
    outcomes: list[object] = []
    with subject.by_hand.transaction():
        subject.by_hand.execute("SELECT 1 FROM jobs WHERE job_id = %s FOR UPDATE", [other.fence.job_id])
        began = clock.monotonic()
        flush = threading.Thread(target=lambda: outcomes.extend(store.apply([(wait,), (request,)])))
        flush.start()
        wait_until(lambda: clock.monotonic() > began + 0.1)  # a lock is waited for 0.2 s at the most
    flush.join(30)
    assert outcomes == [None, []]
    store.apply([(finish(one, clock),), (request,)])
    store._listener._heard.clear()
    store.apply([(finish(two, clock),), (request,)])
    assert not store._listener._heard.is_set()
    store.close()
