"""Holding, resuming, forking and retrying: guarded by the job's row, whole or not at all."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallystick.core.effects.requests import Says, SettleEffect
from tallystick.core.lifecycles import JobState
from tallystick.core.verbs.holds import Held, Hold, Resumed
from tallystick.errors import (
    IdempotencyConflict,
    InvariantBroken,
    NoSuchStep,
    NotFailed,
    NotFound,
    StaleLease,
)
from tallystick.store.api import (
    Bundle,
    CancelJob,
    ClaimedJob,
    Deliver,
    Existing,
    Fact,
    Forked,
    ForkJob,
    HoldJob,
    Interrupted,
    OfTenant,
    ResumeJob,
)
from tallystick.store.api import RecordEvent as Note
from tallystick.testing.conformance.drafts import (
    FRESH,
    LEASE_MS,
    bundles,
    check_chain,
    claim,
    claimed,
    done,
    fail,
    finish,
    held_job,
    outcome_of,
    reclaim,
    release,
    step,
    submission,
)
from tallystick.testing.conformance.pictures import StepPicture
from tallystick.testing.conformance.race import race
from tallystick.testing.conformance.subject import Subject

WHY = "for this test"


def hold_of(subject: Subject, job_id: str) -> str | None:
    """Return the hold of a job."""
    job = subject.store.job(job_id)
    assert job is not None
    return job.hold


def pause(job_id: str) -> HoldJob:
    """Return the wish to pause a job."""
    return HoldJob(job_id, Hold.PAUSED, WHY)


def recorded(subject: Subject, *names: str) -> ClaimedJob:
    """Make a job that has recorded these steps and return what its worker holds."""
    held = held_job(subject.store, subject.clock)
    for name in names:
        done(subject.store, step(held, subject.clock, name))
    return held


def dead_job(subject: Subject, *names: str) -> str:
    """Make a job that has recorded these steps and failed, and return its identifier."""
    held = recorded(subject, *names)
    done(subject.store, fail(held, subject.clock))
    return held.fence.job_id


class Holds:
    """A hold is a flag: no worker claims the job, and nothing else about it changes."""

    def test_a_hold_keeps_a_due_job_from_being_claimed_until_it_is_resumed(self, subject: Subject) -> None:
        done(subject.store, submission(subject.clock, "one"))
        assert done(subject.store, pause("one")) is Held.HELD
        assert claimed(subject.store, claim()) == []
        assert subject.store.next_due(("default",)) is None
        assert done(subject.store, ResumeJob("one")) is Resumed.FREE
        (held,) = claimed(subject.store, claim())
        done(subject.store, finish(held, subject.clock))
        history = subject.store.history("one")
        assert [event.type for event in history] == ["submit", "hold", "resume", "claim", "return"]
        check_chain(history)

    def test_what_is_said_for_another_tenant_is_refused_where_it_is_written(self, subject: Subject) -> None:
        store = subject.store
        held = recorded(subject, "charge")
        job_id = held.fence.job_id
        done(store, fail(held, subject.clock))
        waits = submission(subject.clock)
        done(store, waits)
        open_id = waits.job.job_id
        said = [
            (open_id, pause(open_id)),
            (open_id, Deliver(f"{open_id}:s1", open_id, "signal", "go", "1")),
            (open_id, CancelJob(open_id, 0)),
            (open_id, SettleEffect(open_id, Says.RETRY, "ann")),
            (job_id, ForkJob(job_id, FRESH.new(), ("charge", 1))),
            (job_id, ForkJob(job_id, FRESH.new(), None, retry=True)),
        ]
        before = [subject.books(each) for each in (job_id, open_id)]
        for name, request in said:
            refused = outcome_of(store, OfTenant(name, "other"), request)
            absent = outcome_of(store, OfTenant("no-such-job", "other"), request)
            assert isinstance(refused, NotFound), request
            assert str(refused).replace(name, "") == str(absent).replace("no-such-job", "")
        together = bundles(*(submission(subject.clock) for _ in range(3)))
        others: list[Bundle] = [(OfTenant(open_id, "other"), pause(open_id)), *together]
        refused, *rest = store.apply(others)
        assert isinstance(refused, NotFound)
        assert not any(isinstance(each, BaseException) for each in rest)
        assert [subject.books(each) for each in (job_id, open_id)] == before
        assert done(store, OfTenant(open_id, "default"), pause(open_id)) is Held.HELD
        assert done(store, OfTenant(open_id, "default"), CancelJob(open_id, 0)) == JobState.CANCELLED
        forked = done(store, OfTenant(job_id, "default"), said[-1][1])
        assert isinstance(forked, Forked)

    def test_repeating_a_wish_changes_nothing(self, subject: Subject) -> None:
        done(subject.store, submission(subject.clock, "one"))
        assert done(subject.store, ResumeJob("one")) is Resumed.NOT_HELD
        done(subject.store, pause("one"))
        before = subject.books()
        assert done(subject.store, HoldJob("one", Hold.RESTORED, "other")) is Held.ALREADY
        assert subject.books() == before

    def test_a_job_that_runs_is_held_without_a_fact_and_its_holder_goes_on_writing(
        self, subject: Subject
    ) -> None:
        held = held_job(subject.store, subject.clock)
        job_id = held.fence.job_id
        assert done(subject.store, pause(job_id)) is Held.ASKED
        assert len(subject.store.history(job_id)) == 2
        assert subject.store.interrupted([job_id, "nobody"]) == [
            Interrupted(job_id, asked=False, hold="PAUSED", ended=False)
        ]
        done(subject.store, step(held, subject.clock))
        done(subject.store, finish(held, subject.clock))
        check_chain(subject.store.history(job_id))
        assert hold_of(subject, job_id) is None
        assert done(subject.store, pause(job_id)) is Held.ENDED
        assert done(subject.store, ResumeJob(job_id)) is Resumed.ENDED

    @pytest.mark.parametrize("how", ["release", "reclaim"])
    def test_a_hold_outlives_the_attempt_that_did_not_know_of_it(self, subject: Subject, how: str) -> None:
        held = held_job(subject.store, subject.clock)
        done(subject.store, pause(held.fence.job_id))
        if how == "release":
            done(subject.store, release(held, subject.clock))
        else:
            subject.clock.advance(LEASE_MS)
            (expired,) = subject.store.expired(9)
            done(subject.store, reclaim(expired))
        assert claimed(subject.store, claim()) == []
        assert hold_of(subject, held.fence.job_id) == "PAUSED"
        assert done(subject.store, ResumeJob(held.fence.job_id)) is Resumed.FREE
        assert len(claimed(subject.store, claim())) == 1

    def test_any_kind_of_hold_is_resumed(self, subject: Subject) -> None:
        for hold in Hold:
            held = held_job(subject.store, subject.clock)
            fact = Fact(held.chain, "hold", subject.clock.wall_ms(), 1, "{}")
            ending = release(held, subject.clock)._replace(hold=hold.value, hold_reason=WHY, fact=fact)
            done(subject.store, ending)
            assert claimed(subject.store, claim()) == []
            assert done(subject.store, ResumeJob(held.fence.job_id)) is Resumed.FREE
            (again,) = claimed(subject.store, claim())
            done(subject.store, finish(again, subject.clock))

    def test_a_cancellation_takes_the_hold_away_and_leaves_no_room_for_one(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        job_id = held.fence.job_id
        done(subject.store, pause(job_id))
        done(subject.store, CancelJob(job_id, 1_000))
        assert hold_of(subject, job_id) is None
        assert done(subject.store, pause(job_id)) is Held.ENDED
        assert subject.store.interrupted([job_id]) == [
            Interrupted(job_id, asked=True, hold=None, ended=False)
        ]
        done(subject.store, submission(subject.clock, "idle"))
        done(subject.store, pause("idle"))
        done(subject.store, CancelJob("idle", 0))
        assert hold_of(subject, "idle") is None

    def test_a_wish_about_nobody_is_refused_alone(self, subject: Subject) -> None:
        done(subject.store, submission(subject.clock, "one"))
        wishes = (pause("nobody"), ResumeJob("nobody"), ForkJob("nobody", "new", None), pause("one"))
        *refused, held = subject.store.apply(bundles(*wishes))
        assert [type(outcome) for outcome in refused] == [NotFound] * 3
        assert held is Held.HELD

    def test_a_hold_and_the_end_of_an_attempt_in_one_flush_leave_a_whole_chain(
        self, subject: Subject
    ) -> None:
        held = held_job(subject.store, subject.clock)
        job_id = held.fence.job_id
        outcomes = subject.store.apply(
            bundles(release(held, subject.clock), pause(job_id), step(held, subject.clock), ResumeJob(job_id))
        )
        assert sum(isinstance(outcome, StaleLease) for outcome in outcomes) <= 1
        check_chain(subject.store.history(job_id))

    def test_of_many_who_hold_and_claim_at_once_nobody_gets_a_held_job(self, subject: Subject) -> None:
        for number in range(40):
            done(subject.store, submission(subject.clock, f"job-{number:02d}"))

        def act(number: int) -> object:
            if number % 2:
                return done(subject.store, pause(f"job-{number:02d}"))
            return [held.fence.job_id for held in claimed(subject.store, claim(1))]

        with ThreadPoolExecutor(8) as threads:
            outcomes = list(threads.map(act, range(40)))
        taken = {job_id for outcome in outcomes if isinstance(outcome, list) for job_id in outcome}
        for number, outcome in enumerate(outcomes):
            job_id = f"job-{number:02d}"
            if outcome is Held.HELD:
                assert job_id not in taken
            if outcome is Held.ASKED:
                assert job_id in taken
            check_chain(subject.store.history(job_id))


class Forks:
    """A fork is a new job with copies of records; a retry takes the place of a job that failed, once."""

    def test_a_fork_has_copies_before_its_point_as_facts_of_its_own_chain(self, subject: Subject) -> None:
        held = recorded(subject, "a", "b", "c")
        job_id = held.fence.job_id
        before = subject.books(job_id)[StepPicture]
        assert done(subject.store, ForkJob(job_id, "fork", ("c", 1))) == Forked("fork", True, 2)
        assert subject.books(job_id)[StepPicture] == before
        copies = [row for row in subject.steps() if row.job_id == "fork"]
        assert [(row.name, row.n, row.origin_job_id) for row in copies] == [
            ("a", 2, job_id),
            ("b", 3, job_id),
        ]
        check_chain(subject.store.history("fork"))
        (fork,) = claimed(subject.store, claim())
        assert [(record.name, record.result) for record in fork.records] == [("a", '"r"'), ("b", '"r"')]
        assert (fork.fence.attempt, fork.driver, fork.chain.n) == (1, "start", 4)
        done(subject.store, step(fork, subject.clock, "c"))
        done(subject.store, finish(fork, subject.clock))
        check_chain(subject.store.history("fork"))
        done(subject.store, finish(held, subject.clock))
        check_chain(subject.store.history(job_id))

    def test_values_drawn_before_the_last_copy_go_along(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        for number, name in enumerate(("a", "b"), start=1):
            payload = f'{{"notes":{{"now#{number}":{number}}}}}'
            fact = Fact(held.chain, "note", subject.clock.wall_ms(), 1, payload)
            done(subject.store, Note(held.fence, fact), step(held, subject.clock, name))
        done(subject.store, ForkJob(held.fence.job_id, "fork", ("b", 1)))
        (fork,) = claimed(subject.store, claim())
        assert [event.payload for event in fork.tries if event.type == "note"] == ['{"notes":{"now#1":1}}']

    def test_a_point_that_is_not_there_is_refused_and_nothing_is_written(self, subject: Subject) -> None:
        held = recorded(subject, "a")
        before = subject.books()
        for point in (("a", 2), ("b", 1), ("", 1)):
            outcome = outcome_of(subject.store, ForkJob(held.fence.job_id, "fork", point))
            assert isinstance(outcome, NoSuchStep)
        assert subject.books() == before

    def test_a_fork_under_an_identifier_that_is_taken_is_refused_whole(self, subject: Subject) -> None:
        job_id = dead_job(subject, "a")
        before = subject.books()
        assert isinstance(outcome_of(subject.store, ForkJob(job_id, job_id, None)), Exception)
        assert subject.books() == before
        assert done(subject.store, ForkJob(job_id, "fork", None)) == Forked("fork", True, 1)
        check_chain(subject.store.history("fork"))

    def test_a_retry_links_both_jobs_moves_the_reservation_and_is_made_once(self, subject: Subject) -> None:
        done(subject.store, submission(subject.clock, "old", key="k", content="c", idempotency_key="k"))
        (held,) = claimed(subject.store, claim())
        done(subject.store, step(held, subject.clock, "a"))
        done(subject.store, fail(held, subject.clock))
        assert done(subject.store, ForkJob("old", "new", ("a", 1), retry=True)) == Forked("new", True, 0)
        assert done(subject.store, ForkJob("old", "newer", ("a", 1), retry=True)) == Forked("new", False, 0)
        old, new = subject.store.job("old"), subject.store.job("new")
        assert old is not None
        assert new is not None
        assert (old.retried_as, old.state, new.retry_of, new.state) == (
            "new",
            "FAILED_FINAL",
            "old",
            "QUEUED",
        )
        again = outcome_of(subject.store, submission(subject.clock, key="k", content="c"))
        assert isinstance(again, Existing)
        assert again.job_id == "new"

    def test_a_retry_whose_reservation_is_not_where_the_books_say_is_refused_whole(
        self, subject: Subject
    ) -> None:
        """Otherwise a second submission under the key would get the job that failed, or a second one."""
        done(subject.store, submission(subject.clock, "old", idempotency_key="k"))
        (held,) = claimed(subject.store, claim())
        done(subject.store, fail(held, subject.clock))
        outcome = outcome_of(subject.store, ForkJob("old", "new", None, retry=True))
        assert isinstance(outcome, InvariantBroken)
        assert [row.retried_as for row in subject.jobs()] == [None]

    def test_a_fork_said_again_under_its_id_is_the_same_fork(self, subject: Subject) -> None:
        job_id = recorded(subject, "a", "b").fence.job_id
        asked = ForkJob(job_id, "new", ("b", 1), id="i")
        assert done(subject.store, asked) == Forked("new", True, 1)
        assert done(subject.store, asked._replace(new_id="newer")) == Forked("new", False, 0)
        assert {row.job_id for row in subject.jobs()} == {job_id, "new"}

    def test_one_id_for_two_forks_is_refused_and_names_both(self, subject: Subject) -> None:
        job_id = recorded(subject, "a", "b").fence.job_id
        asked = ForkJob(job_id, "new", ("b", 1), id="i")
        done(subject.store, asked)
        for other in (asked._replace(point=("a", 1)), asked._replace(version="2")):
            conflict = outcome_of(subject.store, other._replace(new_id="newer"))
            assert isinstance(conflict, IdempotencyConflict)
            hashes = (conflict.fields["existing_hash"], conflict.fields["submitted_hash"])
            assert (conflict.fields["job_id"], *hashes) == ("new", asked.content_hash, other.content_hash)
        assert len(subject.jobs()) == 2

    def test_an_id_belongs_to_the_job_that_is_forked_and_a_refused_fork_reserves_nothing(
        self, subject: Subject
    ) -> None:
        first, second = (recorded(subject, "a").fence.job_id for _ in range(2))
        assert isinstance(outcome_of(subject.store, ForkJob(first, "n", ("z", 1), id="i")), NoSuchStep)
        assert done(subject.store, ForkJob(first, "one", ("a", 1), id="i")) == Forked("one", True, 0)
        assert done(subject.store, ForkJob(second, "two", ("a", 1), id="i")) == Forked("two", True, 0)
        assert done(subject.store, ForkJob(first, "three", ("a", 1))) == Forked("three", True, 0)
        assert len(subject.reservations()) == 2

    def test_forks_under_one_id_in_one_flush_are_one_job(self, subject: Subject) -> None:
        job_id = recorded(subject, "a").fence.job_id
        wishes = [ForkJob(job_id, f"new-{number}", None, id="i") for number in range(20)]
        made = [outcome for outcome in subject.store.apply(bundles(*wishes)) if isinstance(outcome, Forked)]
        assert len({outcome.job_id for outcome in made}) == 1
        assert Counter(outcome.created for outcome in made) == {True: 1, False: 19}

    def test_only_a_job_that_has_failed_is_retried(self, subject: Subject) -> None:
        held = recorded(subject, "a")
        job_id = held.fence.job_id
        assert isinstance(outcome_of(subject.store, ForkJob(job_id, "n", None, retry=True)), NotFailed)
        done(subject.store, finish(held, subject.clock))
        assert isinstance(outcome_of(subject.store, ForkJob(job_id, "n", None, retry=True)), NotFailed)
        assert len(subject.jobs()) == 1

    def test_dead_letters_are_those_that_failed_and_were_not_retried(self, subject: Subject) -> None:
        first, second, third = (dead_job(subject) for _ in range(3))
        done(subject.store, submission(subject.clock))
        done(subject.store, ForkJob(second, "new", None, retry=True))

        def dead(**wanted: object) -> list[str]:
            asked = {"tenant_id": "default", "handler": None, "after": None, "limit": 9} | wanted
            return [row.job_id for row in subject.store.dead(**asked)]  # type: ignore[arg-type]  # as named above

        assert dead() == [third, first]
        assert dead(limit=1) == [third]
        assert dead(after=third) == [first]
        assert dead(handler="pay") == [third, first]
        assert dead(handler="ship") == dead(tenant_id="other") == []
        assert dead(tenant_id=None) == [third, first]

    def test_retries_in_one_flush_are_one_job(self, subject: Subject) -> None:
        job_id = dead_job(subject, "a")
        wishes = [ForkJob(job_id, f"new-{number}", None, retry=True) for number in range(20)]
        made = [outcome for outcome in subject.store.apply(bundles(*wishes)) if isinstance(outcome, Forked)]
        assert len({outcome.job_id for outcome in made}) == 1
        assert Counter(outcome.created for outcome in made) == {True: 1, False: 19}

    def test_processes_that_retry_the_same_jobs_make_one_each(self, subject: Subject) -> None:
        dead = [dead_job(subject, "a", "b") for _ in range(10)]
        answers = race(subject.url, "retry", [dead] * 4)
        assert answers[0] == answers[1] == answers[2] == answers[3]
        assert len(set(answers[0])) == 10
        assert len(subject.jobs()) == 20
        for job_id in answers[0]:
            check_chain(subject.store.history(job_id))
