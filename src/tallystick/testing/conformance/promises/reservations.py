"""One reservation, one job, however many ask for it at once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tallystick.store.api import Existing
from tallystick.testing.conformance.drafts import done, outcome_of, submission
from tallystick.testing.conformance.race import race
from tallystick.testing.conformance.subject import Subject

KEYS = [f"key-{number}" for number in range(10)]


class Reservations:
    """Concurrent duplicates collapse into one job."""

    def test_the_second_submission_learns_who_was_first_and_writes_nothing(self, subject: Subject) -> None:
        first = submission(subject.clock, key="k", content="one")
        done(subject.store, first)
        created_at = subject.clock.wall_ms()
        subject.clock.advance(5)
        again = outcome_of(subject.store, submission(subject.clock, key="k", content="one"))
        other = outcome_of(subject.store, submission(subject.clock, key="k", content="two"))
        assert again == other == Existing(first.job.job_id, "one", created_at)
        assert len(subject.jobs()) == len(subject.facts()) == 1

    def test_duplicates_in_one_flush_are_one_job(self, subject: Subject) -> None:
        wishes = [submission(subject.clock, key="k") for _ in range(100)]
        first, *others = subject.store.apply([(wish,) for wish in wishes])
        assert first is None
        assert {other.job_id for other in others if isinstance(other, Existing)} == {wishes[0].job.job_id}
        assert len(others) == 99
        assert len(subject.jobs()) == 1

    def test_tenants_and_scopes_do_not_meet(self, subject: Subject) -> None:
        wish = submission(subject.clock, key="k")
        assert wish.reservation is not None
        done(subject.store, wish)
        for change in ({"tenant_id": "other"}, {"scope": "content"}):
            other = submission(subject.clock, key="k")
            reservation = wish.reservation._replace(**change)  # type: ignore[arg-type]  # one text for another
            assert done(subject.store, other._replace(reservation=reservation)) is None
        assert len(subject.jobs()) == 3

    def test_a_hundred_threads_make_one_job_a_key(self, subject: Subject) -> None:
        def submit(key: str) -> tuple[str, str, bool]:
            wish = submission(subject.clock, key=key)
            answer = outcome_of(subject.store, wish)
            if isinstance(answer, Existing):
                return key, answer.job_id, False
            return key, wish.job.job_id, True

        with ThreadPoolExecutor(100) as threads:
            answers = list(threads.map(submit, KEYS * 100))
        assert len({(key, job_id) for key, job_id, _made in answers}) == len(KEYS)
        assert Counter(made for _key, _job_id, made in answers)[True] == len(KEYS)
        assert len(subject.jobs()) == len(KEYS)

    def test_four_processes_make_one_job_a_key(self, subject: Subject) -> None:
        keys = KEYS * 5
        answers = race(subject.url, "submit", [keys, keys[::-1], keys, keys[::-1]])
        belongs = {row.value: row.job_id for row in subject.reservations()}
        assert answers == [[belongs[key] for key in order] for order in (keys, keys[::-1], keys, keys[::-1])]
        assert {row.job_id for row in subject.jobs()} == set(belongs.values())
