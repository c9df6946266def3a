"""Effects: an intent is exclusive, its last holder alone gives its outcome, and all that wait hear of it."""

from __future__ import annotations

import msgspec

from tallystick.core.effects.requests import (
    CallEffect,
    DoubtEffect,
    EndEffect,
    Granted,
    Instead,
    Intent,
    Known,
    RestEffect,
    Says,
    Settled,
    SettleEffect,
    TakeProbe,
)
from tallystick.core.effects.rows import Came, EffectRow, EffectRules, Phase
from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.lifecycles import AttemptState, JobState
from tallystick.errors import StaleLease
from tallystick.store.api import CancelJob, ClaimedJob, Effects, NewLease
from tallystick.testing.conformance.drafts import (
    FRESH,
    LEASE_MS,
    bundles,
    claim,
    claimed,
    done,
    finish,
    held_job,
    outcome_of,
    reclaim,
)
from tallystick.testing.conformance.subject import Subject

RULES = EffectRules(timeout_ms=1_000, tries=2, settle_ms=500, probe=True)
UNIT = "0/charge#1"


def call(
    subject: Subject, held: ClaimedJob, key: str = "k", *, args: str = "a", rules: EffectRules = RULES
) -> CallEffect:
    """Return the wish to call an effect."""
    intent = Intent(("default", "charge", key), args, f'"{args}"', rules.written())
    lease = NewLease(FRESH.token(), "w", rules.lease_ms)
    at = subject.clock.wall_ms()
    return CallEffect(held.fence, held.chain, (0, "charge", 1), intent, lease, at)


def end(held: ClaimedJob, called: CallEffect, outcome: Came = Came.HAPPENED) -> EndEffect:
    """Return what came of a call."""
    result, error = ('"r"', None) if outcome is Came.HAPPENED else (None, '{"type":"E","message":"no"}')
    about = (called.place, called.lease.lease_id, outcome, result, error, called.at)
    return EndEffect(held.fence, held.chain, *about)


def keys(subject: Subject, held: ClaimedJob) -> list[EffectRow]:
    """Return the effects of a job."""
    store = subject.store
    assert isinstance(store, Effects)
    return store.effects(held.fence.job_id)


def tried(subject: Subject, held: ClaimedJob) -> list[tuple[int, str, str | None]]:
    """Return the attempts at the effect of a job."""
    return [
        (row.attempt, row.status, row.reason)
        for row in subject.attempts()
        if (row.job_id, row.unit) == (held.fence.job_id, UNIT)
    ]


LOST = (AttemptState.ABORTED, "DUPLICATE_COMMIT")


class EffectPromises:
    """The right to act, what came of it, which jobs wait for it, and how the outcome is found."""

    def test_an_intent_is_durable_and_its_key_is_taken(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        assert done(subject.store, call(subject, held)) == Granted(1)
        (row,) = keys(subject, held)
        assert (row.state, row.phase, row.outcome, row.key) == ("COMMITTED", Phase.CALLING, None, "k")
        assert tried(subject, held) == [(1, AttemptState.COMMITTED, None)]
        assert subject.job(held.fence.job_id).semaphore == 2

    def test_what_came_of_it_is_one_bundle(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        called = call(subject, held)
        done(subject.store, called)
        done(subject.store, end(held, called))
        (row,) = keys(subject, held)
        assert (row.state, row.phase, row.outcome, row.result) == ("DONE", Phase.ENDED, Came.HAPPENED, '"r"')
        assert tried(subject, held) == [(1, AttemptState.DONE, None)]
        assert subject.job(held.fence.job_id).semaphore == 1
        done(subject.store, finish(held, subject.clock))

    def test_two_intents_of_a_key_in_one_flush_are_one_right(self, subject: Subject) -> None:
        first, second = (held_job(subject.store, subject.clock) for _ in range(2))
        wishes = [call(subject, held) for held in (first, second)]
        assert list(subject.store.apply(bundles(*wishes))) == [Granted(1), Instead.WAIT]
        assert (len(keys(subject, first)), keys(subject, second)) == (1, [])
        assert tried(subject, second) == [(1, *LOST)]

    def test_the_end_of_the_owner_brings_its_result_to_all_who_wait(self, subject: Subject) -> None:
        owner, *others = (held_job(subject.store, subject.clock) for _ in range(3))
        called = call(subject, owner)
        done(subject.store, called)
        for other in others:
            assert done(subject.store, call(subject, other)) is Instead.WAIT
            assert subject.job(other.fence.job_id).ready_at is None
        done(subject.store, end(owner, called))
        again = claimed(subject.store, claim(5))
        assert {held.fence.job_id for held in again} == {other.fence.job_id for other in others}
        for held in again:
            guid = f"effect:{held.fence.job_id}:{UNIT}:1"
            (message,) = (each for each in subject.messages() if each.job_id == held.fence.job_id)
            assert (message.guid, message.payload) == (guid, '{"value":"r"}')
            assert done(subject.store, call(subject, held)) is Instead.TAKE

    def test_an_owner_and_one_who_comes_meanwhile_in_one_flush(self, subject: Subject) -> None:
        for owner_first in (True, False):
            key = f"k{owner_first}"
            owner, other = (held_job(subject.store, subject.clock) for _ in range(2))
            called = call(subject, owner, key)
            done(subject.store, called)
            both = [end(owner, called), call(subject, other, key)]
            _end, comes = list(subject.store.apply(bundles(*both[:: 1 if owner_first else -1])))[
                :: 1 if owner_first else -1
            ]
            assert comes == (Known('"r"', None) if owner_first else Instead.WAIT)
            if not owner_first:
                (held,) = claimed(subject.store, claim(5))
                assert done(subject.store, call(subject, held, key)) is Instead.TAKE

    def test_a_key_that_is_free_again_is_taken_by_the_first_who_comes(self, subject: Subject) -> None:
        owner, *_others = jobs = [held_job(subject.store, subject.clock) for _ in range(3)]
        wishes = [call(subject, held) for held in jobs]
        subject.store.apply(bundles(*wishes))
        done(subject.store, end(owner, wishes[0], Came.REFUSED))
        second, third = claimed(subject.store, claim(5))
        assert done(subject.store, call(subject, second)) == Granted(1)
        assert done(subject.store, call(subject, third)) is Instead.WAIT
        assert tried(subject, second) == [(1, *LOST), (2, AttemptState.COMMITTED, None)]
        assert tried(subject, third) == [(1, *LOST), (2, *LOST)]

    def test_a_refusal_keeps_its_key_where_it_is_to(self, subject: Subject) -> None:
        rules = msgspec.structs.replace(RULES, keep_refusals=True)
        owner, waits, late = (held_job(subject.store, subject.clock) for _ in range(3))
        called = call(subject, owner, rules=rules)
        done(subject.store, called)
        assert done(subject.store, call(subject, waits, rules=rules)) is Instead.WAIT
        done(subject.store, end(owner, called, Came.REFUSED))
        (again,) = claimed(subject.store, claim(5))
        assert done(subject.store, call(subject, again, rules=rules)) is Instead.TAKE
        known = done(subject.store, call(subject, late, rules=rules))
        assert known == Known(None, '{"type":"E","message":"no"}')

    def test_other_arguments_under_a_key_are_a_conflict_that_names_both(self, subject: Subject) -> None:
        owner, other = (held_job(subject.store, subject.clock) for _ in range(2))
        done(subject.store, call(subject, owner))
        known = done(subject.store, call(subject, other, args="b"))
        assert isinstance(known, Known)
        error = msgspec.json.decode(known.error or "")
        assert (error["code"], "a by " in error["message"], "b now" in error["message"]) == (
            "EFFECT_CONFLICT",
            True,
            True,
        )

    def test_only_the_holder_of_the_last_call_says_what_came_of_it(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        called = call(subject, held)
        done(subject.store, called)
        done(subject.store, RestEffect(held.fence, called.place, called.lease.lease_id, 0))
        again = call(subject, held)._replace(last=called.lease.lease_id)
        assert done(subject.store, again) == Granted(2)
        before = subject.books()
        assert isinstance(outcome_of(subject.store, end(held, called)), StaleLease)
        assert subject.books() == before
        # What it said is kept for people.
        (kept,) = subject.stale_reports()
        assert kept.report == f'EndEffect {UNIT}: HAPPENED "r"'
        done(subject.store, end(held, again))

    def test_one_bad_request_among_others_refuses_itself_alone(self, subject: Subject) -> None:
        jobs = [held_job(subject.store, subject.clock, lease_ms=ms) for ms in (LEASE_MS, 10, LEASE_MS)]
        subject.clock.advance(10)
        wishes = [call(subject, held, f"k{number}") for number, held in enumerate(jobs)]
        first, second, third = subject.store.apply(bundles(*wishes))
        assert (first, third) == (Granted(1), Granted(1))
        assert isinstance(second, StaleLease)
        assert keys(subject, jobs[1]) == []

    def test_a_call_that_was_lost_is_in_doubt_and_one_worker_asks(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        done(subject.store, call(subject, held))
        subject.clock.advance(LEASE_MS)
        store = subject.store
        # While its job has a holder, its effect is left to it.
        assert [done(store, reclaim(lost)) for lost in store.expired(10)] == [Reclaim.LEAVE, Reclaim.RETRY]
        assert [done(store, reclaim(lost)) for lost in store.expired(10)] == [Reclaim.IN_DOUBT]
        assert isinstance(store, Effects)
        assert store.due_probes(["charge"], 10) == []
        subject.clock.advance(RULES.settle_ms)
        (due,) = store.due_probes(["charge"], 10)
        ask = TakeProbe(due.job_id, due.unit, due.rev, 1_000)
        taken = done(store, ask)
        assert isinstance(taken, EffectRow)
        assert done(store, ask) is None
        late = SettleEffect(due.job_id, Says.HAPPENED, "probe", due.unit, result="1", rev=due.rev)
        assert done(store, late) is Settled.MOVED
        assert done(store, late._replace(rev=taken.rev)) is Settled.DONE
        assert keys(subject, held)[0].outcome == Came.HAPPENED

    def test_a_job_whose_effect_is_open_does_not_end(self, subject: Subject) -> None:
        for ending in ("return", "cancel", "deadline"):
            held = held_job(subject.store, subject.clock)
            called = call(subject, held, ending)
            done(subject.store, called)
            if ending == "return":
                assert done(subject.store, finish(held, subject.clock)) is Instead.WAIT
            else:
                why = (called.place, called.lease.lease_id, "cut", called.at)
                assert done(subject.store, DoubtEffect(held.fence, held.chain, *why)) is Instead.WAIT
                cancel = CancelJob(held.fence.job_id, 0, force=ending == "deadline")
                assert done(subject.store, cancel) == JobState.CANCELLING
            assert keys(subject, held)[0].is_open
            assert subject.job(held.fence.job_id).completed_at is None

    def test_a_person_ends_the_job_and_the_effect_stays_open(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        called = call(subject, held)
        done(subject.store, called)
        cancel = CancelJob(held.fence.job_id, 0, force=True, abandon=True)
        assert done(subject.store, cancel) == JobState.CANCELLED
        assert isinstance(outcome_of(subject.store, end(held, called)), StaleLease)
        subject.clock.advance(RULES.lease_ms)
        (lost,) = subject.store.expired(10)
        assert done(subject.store, reclaim(lost)) is Reclaim.IN_DOUBT
        answer = SettleEffect(held.fence.job_id, Says.RETRY, "ann")
        assert done(subject.store, answer) is Settled.ENDED
        assert done(subject.store, answer._replace(says=Says.DID_NOT_HAPPEN)) is Settled.DONE
        (row,) = keys(subject, held)
        assert (row.outcome, row.ended_by, tried(subject, held)) == (
            Came.NOT_DONE,
            "ann",
            [(1, AttemptState.DONE, None)],
        )
