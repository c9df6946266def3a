"""A transaction on loan: the user's rows and ours become durable together, alone, and in time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tallystick.errors import BadInput, StaleLease, StoreMisused, TxTooLong
from tallystick.store.api import Bundle, ClaimedJob, Outcome, RecordStep, RunTx, Transaction
from tallystick.store.rendezvous import Rendezvous
from tallystick.testing.conformance.drafts import (
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    outcome_of,
    reclaim,
    step,
    submission,
)
from tallystick.testing.conformance.subject import Subject

SECONDS_MAX = 30


class Borrower:
    """A thread that waits for its turn and runs a body with the loan."""

    def __init__(
        self, held: ClaimedJob, body: Callable[[Transaction], RecordStep], *, ms_max: int = 20_000
    ) -> None:
        """Start waiting."""
        turn: Rendezvous[Transaction, RecordStep] = Rendezvous()
        self.request = RunTx(held.fence, turn, ms_max)
        self._thread = threading.Thread(target=turn.take, args=(body,), daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Insist that the thread has gone."""
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive()


def run(subject: Subject, *borrowers: Borrower) -> list[Outcome | BaseException]:
    """Apply all in one flush."""
    outcomes = subject.store.apply([(borrower.request,) for borrower in borrowers])
    for borrower in borrowers:
        borrower.join()
    return outcomes


def effect(subject: Subject, held: ClaimedJob, value: str) -> Callable[[Transaction], RecordStep]:
    """Return a body that writes one row and records its step."""

    def body(transaction: Transaction) -> RecordStep:
        subject.put_effect(transaction, value)
        return step(held, subject.clock, value)

    return body


class UsersTransactions:
    """`tx`: exactly once, by its own marker, in the transaction that carries the fence."""

    def test_the_users_rows_and_the_step_become_durable_together(self, subject: Subject) -> None:
        held = held_job(subject.store, subject.clock)
        (outcome,) = run(subject, Borrower(held, effect(subject, held, "a")))
        assert isinstance(outcome, RecordStep)
        assert subject.effects() == ["a"]
        assert [row.name for row in subject.steps()] == ["a"]
        check_chain(subject.store.history(held.fence.job_id))

    def test_a_body_that_raises_is_rolled_back_alone(self, subject: Subject) -> None:
        workers = [held_job(subject.store, subject.clock) for _ in range(3)]

        def raises(transaction: Transaction) -> RecordStep:
            subject.put_effect(transaction, "never")
            raise ValueError("no")

        borrowers = [Borrower(held, effect(subject, held, str(index))) for index, held in enumerate(workers)]
        borrowers[1] = Borrower(workers[1], raises)
        outcomes = run(subject, *borrowers)
        assert isinstance(outcomes[1], ValueError)
        assert subject.effects() == ["0", "2"]

    def test_a_stale_workers_rows_are_refused_with_its_step(self, subject: Subject) -> None:
        store, clock = subject.store, subject.clock
        slow = held_job(store, clock, lease_ms=1_000)
        clock.advance(1_000)
        done(store, reclaim(store.expired(1)[0]))
        (replacement,) = claimed(store, claim())
        late, fresh = run(
            subject,
            Borrower(slow, effect(subject, slow, "late")),
            Borrower(replacement, effect(subject, replacement, "fresh")),
        )
        assert isinstance(late, StaleLease)
        assert isinstance(fresh, RecordStep)
        assert subject.effects() == ["fresh"]
        check_chain(store.history(slow.fence.job_id))

    @pytest.mark.parametrize("place", [0, 2, 4])
    def test_a_body_that_sleeps_past_its_time_is_rolled_back_alone(
        self, subject: Subject, place: int
    ) -> None:
        ended = threading.Event()
        refusals: list[BaseException] = []

        def stuck(transaction: Transaction) -> RecordStep:
            subject.put_effect(transaction, "never")
            ended.wait(SECONDS_MAX)
            try:
                subject.put_effect(transaction, "too late")
            except StoreMisused as error:
                refusals.append(error)
                raise
            raise AssertionError("the loan should have ended")

        outcomes = self._with_one_stuck(subject, stuck, place, ended.set)
        assert isinstance(outcomes[place], TxTooLong)
        assert len(refusals) == 1

    @pytest.mark.parametrize("place", [0, 2, 4])
    def test_a_body_in_an_endless_statement_is_rolled_back_alone(self, subject: Subject, place: int) -> None:
        def stuck(transaction: Transaction) -> RecordStep:
            subject.put_effect(transaction, "never")
            subject.spin(transaction)
            raise AssertionError("the statement should have been interrupted")

        outcomes = self._with_one_stuck(subject, stuck, place, lambda: None)
        assert isinstance(outcomes[place], TxTooLong)

    def _with_one_stuck(
        self,
        subject: Subject,
        stuck: Callable[[Transaction], RecordStep],
        place: int,
        after: Callable[[], None],
    ) -> list[Outcome | BaseException]:
        """Run five transactions and a return in one flush, one of them stuck, and check the others."""
        workers = [held_job(subject.store, subject.clock) for _ in range(5)]
        returning = held_job(subject.store, subject.clock)
        borrowers = [Borrower(held, effect(subject, held, str(index))) for index, held in enumerate(workers)]
        replaced = borrowers[place]
        borrowers[place] = Borrower(workers[place], stuck, ms_max=150)
        replaced.request.turn.call_off()
        batch: list[Bundle] = [
            *((borrower.request,) for borrower in borrowers),
            (finish(returning, subject.clock),),
        ]
        outcomes = subject.store.apply(batch)
        after()
        for borrower in borrowers:
            borrower.join()
        others = [index for index in range(5) if index != place]
        assert all(isinstance(outcomes[index], RecordStep) for index in others)
        assert outcomes[5] is None
        assert subject.effects() == [str(index) for index in others]
        for held in (*workers, returning):
            check_chain(subject.store.history(held.fence.job_id))
        return outcomes

    def test_a_bundle_inside_a_body_shares_its_fate(self, subject: Subject) -> None:
        held, other = held_job(subject.store, subject.clock), held_job(subject.store, subject.clock)
        kept, dropped = submission(subject.clock, "kept"), submission(subject.clock, "dropped")

        def submits(transaction: Transaction) -> RecordStep:
            assert transaction.apply((kept,)) is None
            return step(held, subject.clock)

        def regrets(transaction: Transaction) -> RecordStep:
            transaction.apply((dropped,))
            raise ValueError("no")

        run(subject, Borrower(held, submits), Borrower(other, regrets))
        assert subject.store.job("kept") is not None
        assert subject.store.job("dropped") is None
        assert (kept.facts[0].chain.n, dropped.facts[0].chain.n) == (1, 0)


class LentTransactions:
    """`transaction()`: valid in its block and in its thread."""

    def test_a_block_that_ends_well_is_durable_and_one_that_raises_never_was(self, subject: Subject) -> None:
        kept, dropped = submission(subject.clock, "kept"), submission(subject.clock, "dropped")
        with subject.store.transaction() as transaction:
            subject.put_effect(transaction, "a")
            transaction.apply((kept,))

        def regret(transaction: Transaction) -> None:
            subject.put_effect(transaction, "b")
            transaction.apply((dropped,))
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"), subject.store.transaction() as transaction:
            regret(transaction)
        assert subject.effects() == ["a"]
        assert [row.job_id for row in subject.jobs()] == ["kept"]
        assert dropped.facts[0].chain.n == 0, "a place that was not written is given back"
        done(subject.store, dropped)
        check_chain(subject.store.history("dropped"))

    def test_a_transaction_is_refused_after_its_end_and_in_other_threads(self, subject: Subject) -> None:
        errors: list[BaseException] = []

        def elsewhere(transaction: Transaction) -> None:
            try:
                subject.put_effect(transaction, "never")
            except StoreMisused as error:
                errors.append(error)

        with subject.store.transaction() as transaction:
            thread = threading.Thread(target=elsewhere, args=(transaction,))
            thread.start()
            thread.join(SECONDS_MAX)
        elsewhere(transaction)
        assert len(errors) == 2
        assert subject.effects() == []

    @pytest.mark.parametrize(
        "words",
        [
            "BEGIN",
            "commit",
            "  Rollback",
            "ROLLBACK TO bundle",
            "-- a remark\nCOMMIT",
            "/* a remark */ COMMIT",
            "; COMMIT",
        ],
    )
    def test_a_transaction_cannot_be_ended_from_inside(self, subject: Subject, words: str) -> None:
        with subject.store.transaction() as transaction:
            subject.put_effect(transaction, "a")
            with pytest.raises(BadInput):
                transaction.execute(words)
            with pytest.raises(BadInput):
                transaction.executemany(words, [()])
        assert subject.effects() == ["a"]

    def test_waiting_for_the_store_inside_its_own_transaction_is_refused_at_once(
        self, subject: Subject
    ) -> None:
        held = held_job(subject.store, subject.clock)
        waiting = Borrower(held, effect(subject, held, "never"))
        with subject.store.transaction() as transaction:
            subject.put_effect(transaction, "a")
            with pytest.raises(StoreMisused):
                subject.store.apply([(submission(subject.clock),), (waiting.request,)])
            waiting.join()
            with pytest.raises(StoreMisused), subject.store.transaction():
                raise AssertionError("never lent")
        assert subject.effects() == ["a"]
        assert outcome_of(subject.store, submission(subject.clock)) is None
