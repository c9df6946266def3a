"""Closers: however many processes end the children of a group, and wherever they die, one closes it."""

from __future__ import annotations

from tallystick.testing.conformance.drafts import done, held_job
from tallystick.testing.conformance.promises.families import group_of, spawning, told
from tallystick.testing.conformance.race import race
from tallystick.testing.conformance.subject import Subject
from tallystick.testing.expected_digits import CLOSER


class Closers:
    """Many processes and one group."""

    def test_four_processes_that_end_the_children_of_a_group_find_one_closer(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        done(subject.store, spawning(subject, held, 60))
        ended = race(subject.url, "close", [[60]] * 4)
        assert sorted(child for share in ended for child in share) == [
            row.job_id for row in subject.jobs() if row.parent_job_id
        ]
        assert group_of(subject)[1:] == (0, 0)
        digits = told(subject)
        assert [ledger % 100_000_000 for ledger in digits] == list(range(1, 61))
        assert [ledger for ledger in digits if ledger >= CLOSER] == [CLOSER + 60]
        assert [row.kind for row in subject.messages()].count("resume") == 1

    def test_a_child_whose_process_dies_at_its_end_is_counted_whole_or_not_at_all(
        self, subject: Subject
    ) -> None:
        held = held_job(subject.store, subject.clock)
        total = 2 * len(subject.crash_points)
        done(subject.store, spawning(subject, held, total))
        for point in subject.crash_points:
            assert race(subject.url, "close", [[2]], crash_at=f"{point}:2") == [None], point
            ledger, semaphore, _failed = group_of(subject)
            digits = told(subject)
            assert len(digits) == total - int(str(semaphore)) == int(str(ledger)) % 100_000_000, point
            done_jobs = [row for row in subject.jobs() if row.state == "SUCCEEDED"]
            assert len(done_jobs) == len(digits), point
