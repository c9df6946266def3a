"""What each primitive makes durable together, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.clock import VirtualClock
from tallystick.core.chain import Chain
from tallystick.core.ledger.decisions import Reclaim
from tallystick.errors import InvariantBroken, StaleLease
from tallystick.store.api import ClaimedJob, Fence, Primitive, ReclaimAttempt, RenewLeases, Store
from tallystick.testing.conformance.drafts import (
    LEASE_MS,
    born_claimed,
    bundles,
    check_chain,
    claim,
    claimed,
    done,
    fail,
    failed_try,
    finish,
    held_job,
    outcome_of,
    reclaim,
    release,
    step,
    submission,
)
from tallystick.testing.conformance.pictures import AttemptPicture, JobPicture
from tallystick.testing.conformance.subject import Subject
from tallystick.testing.expected_digits import SETTLED, WORD_CLOSED

REPORTS: dict[str, Callable[[ClaimedJob, VirtualClock], Primitive]] = {
    "step": step,
    "try": failed_try,
    "release": release,
    "finish": finish,
    "fail": fail,
}


class WhatBecomesDurable:
    """The rows that one accepted bundle writes, as another opening of the store reads them."""

    def test_a_submission_is_a_queued_job_with_one_open_obligation_and_its_first_event(
        self, subject: Subject
    ) -> None:
        wish = submission(subject.clock, key="k", tags='["a"]', priority=3)
        assert done(subject.store, wish) is None
        job = subject.store.job(wish.job.job_id)
        assert job is not None
        assert (job.state, job.attempt, job.semaphore, job.start_ledger) == ("QUEUED", 0, 1, 0)
        assert (job.priority, job.tags, job.ready_at) == (3, '["a"]', wish.job.ready_at)
        assert [event.type for event in subject.store.history(job.job_id)] == ["submit"]
        (reserved,) = subject.reservations()
        assert (reserved.value, reserved.job_id) == ("k", job.job_id)

    def test_a_job_claimed_at_birth_has_its_attempt_and_its_entry_counted(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        job = subject.store.job(held.fence.job_id)
        assert job is not None
        assert (job.state, job.attempt, job.ready_at, job.start_ledger) == ("IN_PROGRESS", 1, None, 1)
        (attempt,) = subject.attempts()
        assert (attempt.status, attempt.lease_id) == ("IN_PROGRESS", held.fence.lease_id)
        assert [event.type for event in subject.store.history(job.job_id)] == ["submit", "claim"]

    def test_a_claim_hands_over_what_was_recorded_and_counts_the_entry_before_any_work(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        first = held_job(store, clock)
        done(store, step(first, clock))
        done(store, failed_try(first, clock))
        done(store, release(first, clock))
        (again,) = claimed(store, claim())
        assert again.fence.attempt == 2
        assert [(record.name, record.result) for record in again.records] == [("charge", '"r"')]
        assert [event.type for event in again.tries] == ["try"]
        assert again.charged == 1
        (job,) = subject.jobs()
        assert (job.start_ledger, job.start_redeliveries, job.attempts_total) == (1, 1, 2)
        done(store, finish(again, clock))
        check_chain(store.history(again.fence.job_id))

    def test_charges_are_counted_since_the_last_record(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        for charged in (1, 2):
            done(store, release(held, clock))
            (held,) = claimed(store, claim())
            assert held.charged == charged
        done(store, release(held, clock)._replace(charged=False))
        (held,) = claimed(store, claim())
        assert held.charged == 2, "a release without a fault costs nothing"
        done(store, step(held, clock))
        done(store, release(held, clock))
        (held,) = claimed(store, claim())
        assert held.charged == 1

    def test_a_step_is_one_row_that_is_its_own_event(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        before = subject.books()[JobPicture]
        done(store, step(held, clock))
        (row,) = subject.steps()
        assert (row.state, row.ledger, row.n, row.attempt) == ("SUCCEEDED", SETTLED, 3, 1)
        assert subject.books()[JobPicture] == before, "a step must not touch the job row"
        assert len(subject.facts()) == 2
        assert [event.type for event in store.history(held.fence.job_id)] == ["submit", "claim", "step"]
        check_chain(store.history(held.fence.job_id))

    def test_a_release_makes_the_job_due_again_at_its_time(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        done(store, release(held, clock, delay_ms=500))
        (attempt,) = subject.attempts()
        assert (attempt.status, attempt.reason, attempt.charged) == ("ABORTED", "ERROR", 1)
        assert claimed(store, claim()) == []
        assert store.next_due(("default",)) == clock.wall_ms() + 500
        clock.advance(500)
        assert [job.fence.job_id for job in claimed(store, claim())] == [held.fence.job_id]

    def test_a_return_closes_job_attempt_and_start_message_together(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        done(store, finish(held, clock))
        job = store.job(held.fence.job_id)
        assert job is not None
        assert (job.state, job.result, job.semaphore, job.start_ledger) == (
            "SUCCEEDED",
            '"ok"',
            0,
            WORD_CLOSED,
        )
        assert job.completed_at == clock.wall_ms()
        (attempt,) = subject.attempts()
        assert (attempt.status, attempt.finished_at) == ("DONE", clock.wall_ms())
        assert store.finished([job.job_id, "nobody"]) == {job.job_id: job, "nobody": None}

    def test_a_job_that_fails_closes_like_any_other(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        done(store, fail(held, clock))
        job = store.job(held.fence.job_id)
        assert job is not None
        assert (job.state, job.semaphore, job.start_ledger) == ("FAILED_FINAL", 0, WORD_CLOSED)
        assert (job.error, job.error_code, job.error_message) == ('{"type":"E"}', "E_CODE", "no")
        assert subject.attempts()[0].status == "ABORTED"

    def test_a_renewal_moves_live_leases_and_names_those_still_held(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        live, dead = held_job(store, clock, lease_ms=1_000), held_job(store, clock, lease_ms=500)
        clock.advance(500)
        unknown = Fence(live.fence.job_id, 1, "another")
        fences = (live.fence, dead.fence, unknown)
        assert done(store, RenewLeases(fences, 1_000)) == {live.fence}
        clock.advance(999)
        done(store, step(live, clock))
        assert isinstance(outcome_of(store, step(dead, clock)), StaleLease)

    def test_nobody_renews_the_lease_of_another(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        fence = held_job(store, clock).fence
        before = subject.books()
        for wrong in (
            fence._replace(lease_id="another"),
            fence._replace(attempt=2),
            fence._replace(job_id="x"),
        ):
            assert done(store, RenewLeases((wrong,), 10 * LEASE_MS)) == set()
        assert subject.books() == before

    def test_everything_is_there_for_another_opening_of_the_store(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        done(subject.store, step(held, subject.clock), finish(held, subject.clock))
        other = subject.open(subject.clock)
        try:
            assert other.job(held.fence.job_id) == subject.store.job(held.fence.job_id)
            assert other.history(held.fence.job_id) == subject.store.history(held.fence.job_id)
            assert other.counts() == {"SUCCEEDED": 1}
        finally:
            other.close()


class WhatIsRefused:
    """A report is accepted only with the current attempt and lease, in the right state, before the end."""

    @pytest.mark.parametrize("report", REPORTS)
    @pytest.mark.parametrize(
        "wrong", ["attempt", "lease", "expired", "released", "ended", "reclaimed", "rebooted"]
    )
    def test_a_stale_report_changes_nothing_and_is_kept_for_people(
        self, subject: Subject, report: str, wrong: str
    ) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock, lease_ms=1_000)
        late = _made_stale(store, clock, held, wrong)
        before, place = subject.books(), (late.chain.n, late.chain.head)
        primitive = REPORTS[report](late, clock)
        assert isinstance(outcome_of(store, primitive), StaleLease)
        assert subject.books() == before
        assert (late.chain.n, late.chain.head) == place
        (kept,) = subject.stale_reports()
        assert (kept.job_id, kept.attempt, kept.lease_id) == tuple(late.fence)
        assert (kept.report, kept.at) == (type(primitive).__name__, clock.wall_ms())

    def test_a_lease_is_live_one_millisecond_before_its_end_and_over_at_its_end(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock, lease_ms=1_000)
        clock.advance(999)
        done(store, step(held, clock))
        assert store.expired(10) == []
        clock.advance(1)
        assert isinstance(outcome_of(store, step(held, clock, occurrence=2)), StaleLease)
        assert [expired.fence for expired in store.expired(10)] == [held.fence]

    def test_a_sweep_cannot_take_a_live_lease_and_only_one_sweep_takes_a_dead_one(
        self, subject: Subject
    ) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock, lease_ms=1_000)
        assert done(store, ReclaimAttempt(held.fence)) is Reclaim.LEAVE
        clock.advance(1_000)
        (one,), (two,) = store.expired(10), store.expired(10)
        assert store.apply(bundles(reclaim(one), reclaim(two))) == [Reclaim.RETRY, Reclaim.LEAVE]
        assert len([event for event in store.history(held.fence.job_id) if event.type == "reclaim"]) == 1
        check_chain(store.history(held.fence.job_id))

    def test_a_slow_worker_cannot_write_after_its_replacement(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        slow = held_job(store, clock, lease_ms=1_000)
        clock.advance(1_000)
        done(store, reclaim(store.expired(1)[0]))
        (replacement,) = claimed(store, claim())
        assert isinstance(outcome_of(store, step(slow, clock), finish(slow, clock)), StaleLease)
        assert done(store, RenewLeases((slow.fence, replacement.fence), LEASE_MS)) == {replacement.fence}
        done(store, step(replacement, clock), finish(replacement, clock))
        assert len(subject.steps()) == 1
        check_chain(store.history(slow.fence.job_id))

    def test_a_job_with_open_obligations_cannot_end(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        now = clock.wall_ms()
        ends_at = clock.boot_ms() + LEASE_MS
        subject.plant(
            JobPicture("two", "IN_PROGRESS", now, now, attempt=1, semaphore=2, start_ledger=1),
            AttemptPicture("two", "", 1, "IN_PROGRESS", "l", clock.epoch(), ends_at, "w"),
        )
        held = held_job(store, clock)._replace(fence=Fence("two", 1, "l"), chain=Chain("two"))
        before = subject.books()
        assert isinstance(outcome_of(store, finish(held, clock)), InvariantBroken)
        assert subject.books() == before

    def test_a_step_that_is_recorded_cannot_be_recorded_again(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        done(store, step(held, clock))
        assert isinstance(outcome_of(store, step(held, clock)), InvariantBroken)
        done(store, step(held, clock, occurrence=2))
        check_chain(store.history(held.fence.job_id))

    def test_a_job_identifier_is_used_once(self, subject: Subject) -> None:
        wish = submission(subject.clock, "same", key="a")
        done(subject.store, wish)
        assert isinstance(
            outcome_of(subject.store, submission(subject.clock, "same", key="b")), InvariantBroken
        )
        assert [row.value for row in subject.reservations()] == ["a"]


class BatchesAndBundles:
    """Bundles share a flush and not their fate; the primitives of one bundle share both."""

    @pytest.mark.parametrize("place", [0, 50, 99])
    @pytest.mark.parametrize("report", REPORTS)
    def test_one_stale_bundle_in_a_hundred_spoils_nobody_elses(
        self, subject: Subject, report: str, place: int
    ) -> None:
        store, clock = subject.store, subject.clock
        made = [born_claimed(clock) for _ in range(100)]
        assert store.apply([(bundle,) for bundle, _held in made]) == [None] * 100
        workers = [held for _bundle, held in made]
        done(store, release(workers[place], clock, hold="PAUSED"))
        outcomes = store.apply([(REPORTS[report](held, clock),) for held in workers])
        refused = [index for index, outcome in enumerate(outcomes) if isinstance(outcome, StaleLease)]
        assert refused == [place]
        assert [outcome for index, outcome in enumerate(outcomes) if index != place] == [None] * 99
        for index, held in enumerate(workers):
            history = store.history(held.fence.job_id)
            check_chain(history)
            assert len(history) == 3, index
        assert len(subject.stale_reports()) == 1

    def test_a_batch_of_every_kind_with_a_stale_one_of_every_kind(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        good = {name: held_job(store, clock) for name in REPORTS}
        dead = {name: held_job(store, clock, lease_ms=1) for name in REPORTS}
        clock.advance(1)
        mixed = [REPORTS[name](held, clock) for pair in ((good, dead)) for name, held in pair.items()]
        renewal = RenewLeases((good["step"].fence, dead["step"].fence), LEASE_MS)
        fresh = submission(clock)
        outcomes = store.apply([*bundles(*mixed), (renewal,), (fresh,), (claim(10),)])
        assert outcomes[:5] == [None] * 5
        assert all(isinstance(outcome, StaleLease) for outcome in outcomes[5:10])
        assert outcomes[10:12] == [{good["step"].fence}, None]
        assert isinstance(outcomes[12], list)
        assert {held.fence.job_id for held in outcomes[12]} == {
            fresh.job.job_id,
            good["release"].fence.job_id,
        }, "claims come last and may take what this batch has just submitted or released"
        for held in (*good.values(), *dead.values()):
            check_chain(store.history(held.fence.job_id))

    def test_the_primitives_of_a_bundle_fail_together(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held, gone = held_job(store, clock), held_job(store, clock, lease_ms=1)
        clock.advance(1)
        before = subject.books()
        for bundle in (
            (step(held, clock), finish(gone, clock)),
            (step(held, clock), submission(clock), step(gone, clock)),
            (submission(clock, key="k"), finish(gone, clock)),
            (finish(gone, clock), submission(clock)),
            (finish(held, clock), step(held, clock)),
        ):
            assert isinstance(outcome_of(store, *bundle), StaleLease)
            assert subject.books() == before
        done(store, step(held, clock), step(held, clock, "ship"), finish(held, clock))
        check_chain(store.history(held.fence.job_id))

    def test_a_stale_report_is_kept_wherever_it_stands_in_its_bundle(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        gone = held_job(store, clock, lease_ms=1)
        clock.advance(1)
        assert isinstance(outcome_of(store, finish(gone, clock), claim()), StaleLease)
        assert [kept.report for kept in subject.stale_reports()] == ["EndJob"]

    def test_a_return_and_the_next_claim_may_share_a_bundle(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        held = held_job(store, clock)
        following = submission(clock)
        done(store, following)
        outcome = done(store, finish(held, clock), claim())
        assert isinstance(outcome, list)
        assert [job.fence.job_id for job in outcome] == [following.job.job_id]

    def test_a_value_that_no_store_can_keep_fails_alone(self, subject: Subject) -> None:
        wishes = [submission(subject.clock) for _ in range(5)]
        wishes[1] = submission(subject.clock, priority=2**70)
        wishes[3] = submission(subject.clock, payload='"\ud800"')
        outcomes = subject.store.apply([(wish,) for wish in wishes])
        assert [isinstance(outcome, BaseException) for outcome in outcomes] == [
            False,
            True,
            False,
            True,
            False,
        ]
        assert len(subject.jobs()) == len(subject.facts()) == 3

    def test_an_empty_batch_is_a_flush_of_nothing(self, subject: Subject) -> None:
        assert subject.store.apply([]) == []


def _made_stale(store: Store, clock: VirtualClock, held: ClaimedJob, wrong: str) -> ClaimedJob:
    """Return what a worker still holds after its right to write has gone in one of the ways there are."""
    fence = held.fence
    match wrong:
        case "attempt":
            return held._replace(fence=fence._replace(attempt=2))
        case "lease":
            return held._replace(fence=fence._replace(lease_id="another"))
        case "expired":
            clock.advance(1_000)
        case "released":
            done(store, release(held, clock))
        case "ended":
            done(store, finish(held, clock))
        case "reclaimed":
            clock.advance(1_000)
            (expired,) = store.expired(1)
            done(store, reclaim(expired))
        case _:
            clock.reboot()
    return held
