"""Where a search of the queue begins: behind what was claimed, and yet nobody is forgotten there."""

from __future__ import annotations

from tallystick.store.postgres.floors import FLOOR_MARGIN_MS, FLOOR_SECONDS, REST_SECONDS_MAX, Floors
from tallystick.testing.conformance.drafts import claim, claimed, done, submission
from tests.postgres.subject import PostgresSubject

LONG_AGO = 5


def submitted(subject: PostgresSubject, number: int) -> list[str]:
    """Submit jobs, each much later than the one before, and return their identifiers."""
    jobs = []
    for _ in range(number):
        wish = submission(subject.clock)
        done(subject.store, wish)
        jobs.append(wish.job.job_id)
        subject.clock.advance(ms=10 * FLOOR_MARGIN_MS)
    return jobs


def appears_late(subject: PostgresSubject, job_id: str) -> None:
    """Make a job look as if its submitter had taken very long to commit."""
    subject.by_hand.execute("UPDATE jobs SET ready_at = %s WHERE job_id = %s", [LONG_AGO, job_id])


def found(subject: PostgresSubject, limit: int = 1) -> list[str]:
    return [job.fence.job_id for job in claimed(subject.store, claim(limit))]


def test_a_search_that_falls_short_looks_from_the_beginning(subject: PostgresSubject) -> None:
    one, two, three = submitted(subject, 3)
    assert found(subject) == [one]
    assert found(subject) == [two]
    appears_late(subject, three)
    assert found(subject) == [three]


def test_a_search_that_falls_short_takes_both_what_it_found_and_what_was_below(
    subject: PostgresSubject,
) -> None:
    one, two, three = submitted(subject, 3)
    assert found(subject) == [one]
    appears_late(subject, three)
    assert found(subject, 2) == [two, three]
    assert found(subject, 2) == []


def test_a_job_below_the_floor_waits_a_second_at_most_while_others_come(subject: PostgresSubject) -> None:
    one, two, three, four, late = submitted(subject, 5)
    assert found(subject) == [one]
    appears_late(subject, late)
    assert found(subject) == [two]
    assert found(subject) == [three]
    subject.clock.advance(ms=int(FLOOR_SECONDS * 1000) + 1)
    assert found(subject) == [late]
    assert found(subject) == [four]


def test_the_oldest_comes_first_when_nobody_was_late(subject: PostgresSubject) -> None:
    jobs = submitted(subject, 6)
    assert [job for _ in jobs for job in found(subject)] == jobs


def test_one_look_that_was_held_up_hides_nobody_for_long(subject: PostgresSubject) -> None:
    """A job that is taken back from a dead worker is due since its submission, and so below the floor."""
    floors, request = Floors(subject.clock), claim(1)
    began = floors.began()
    subject.clock.advance(ms=60_000)
    floors.looked(request, began)
    floors.learn(request, 0, [], subject.clock.wall_ms())
    assert floors.floor(request) > 0
    assert not floors.may_look(request)
    assert floors.owes
    subject.clock.advance(ms=int(REST_SECONDS_MAX * 1000))
    assert floors.floor(request) == 0
    assert floors.may_look(request)
