"""Use after close, after a fork, from other threads: a clear error each, and no harm done."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import apsw
import pytest

from tallystick.clock import VirtualClock
from tallystick.errors import BadInput, StoreMisused, TallyError, TxTooLong
from tallystick.store.api import RecordStep, RunTx, Transaction
from tallystick.store.sqlite.file.turnstile import holder
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import (
    check_chain,
    done,
    held_job,
    step,
    submission,
)
from tallystick.testing.conformance.promises.loans import Borrower, effect, run
from tests.store.sqlite_subject import ENDLESS, SqliteSubject, child

FORKED = """
import os, sys
from pathlib import Path
from tallystick.clock import SystemClock
from tallystick.errors import StoreMisused
from tallystick.store.sqlite.store import SqliteStore
store = SqliteStore(Path(sys.argv[1]), SystemClock())
if os.fork() == 0:
    refused = 0
    for call in (lambda: store.apply([]), lambda: store.job("j"), lambda: store.transaction().__enter__()):
        try:
            call()
        except StoreMisused:
            refused += 1
    store.close()
    os._exit(refused)
code = os.waitstatus_to_exitcode(os.wait()[1])
store.apply([])
assert store.counts() == {}
store.close()
raise SystemExit(code)
"""


def test_a_store_from_before_a_fork_is_refused_in_the_child_and_works_in_the_parent(tmp_path: Path):
    ended = child(FORKED, tmp_path / "shop.db")
    assert (ended.returncode, ended.stderr) == (3, "")


def test_a_closed_store_is_refused(tmp_path: Path):
    store = SqliteStore(tmp_path / "shop.db", VirtualClock())
    store.close()
    for call in (
        lambda: store.apply([]),
        lambda: store.job("j"),
        store.pulse,
        store.counts,
        lambda: store.expired(1),
        lambda: store.transaction().__enter__(),
    ):
        with pytest.raises(StoreMisused, match="closed"):
            call()


def test_a_store_closed_while_others_wait_to_write_refuses_them_clearly(tmp_path: Path):
    store = SqliteStore(tmp_path / "shop.db", VirtualClock())
    outcomes: list[object] = []

    def write() -> None:
        try:
            outcomes.append(store.apply([(submission(VirtualClock()),)]))
        except TallyError as error:
            outcomes.append(error)

    writers = [threading.Thread(target=write) for _ in range(8)]
    with store._writing:
        for writer in writers:
            writer.start()
        closer = threading.Thread(target=store.close)
        closer.start()
    for thread in (*writers, closer):
        thread.join(30)
    assert len(outcomes) == 8
    assert all(outcome == [None] or isinstance(outcome, StoreMisused) for outcome in outcomes)


def test_statements_hidden_behind_others_cannot_end_a_transaction(subject: SqliteSubject):
    hidden = "INSERT INTO effects VALUES ('a'); COMMIT; INSERT INTO effects VALUES ('b')"
    with pytest.raises(BadInput, match="COMMIT"), subject.store.transaction() as transaction:
        transaction.execute(hidden)
    assert subject.effects() == []


@pytest.mark.parametrize(
    "word", ["ATTACH 'x' AS x", "PRAGMA foreign_keys = OFF", "VACUUM", "END", "RELEASE bundle"]
)
def test_words_that_change_the_connection_are_refused(subject: SqliteSubject, word: str):
    with subject.store.transaction() as transaction, pytest.raises(BadInput):
        transaction.execute(word)


def test_ordinary_words_that_begin_alike_are_allowed(subject: SqliteSubject):
    with subject.store.transaction() as transaction:
        transaction.execute("-- begin with a remark\nCREATE TABLE beginnings (released TEXT)")
        transaction.execute("/* commit */ INSERT INTO beginnings VALUES ('rollback')")
        transaction.executemany("INSERT INTO beginnings VALUES (?)", [("a",), ("b",)])
        assert len(transaction.execute("SELECT * FROM beginnings")) == 3


@pytest.mark.parametrize("heard", [True, False])
def test_a_statement_that_rolls_back_everything_costs_only_its_own_transaction(
    subject: SqliteSubject, heard: bool
):
    """OR ROLLBACK: whether the body hears the error or not, nothing it writes later lands anywhere."""
    store, clock = subject.store, subject.clock
    subject.by_hand.execute("CREATE UNIQUE INDEX once ON effects (value)")
    first, bad, last = (held_job(store, clock) for _ in range(3))

    def careless(transaction: Transaction) -> RecordStep:
        transaction.execute("INSERT INTO effects VALUES ('x')")
        try:
            transaction.execute("INSERT OR ROLLBACK INTO effects VALUES ('x')")
        except apsw.ConstraintError:
            if heard:
                raise
        return step(bad, clock)

    outcomes = run(
        subject,
        Borrower(first, effect(subject, first, "1")),
        Borrower(bad, careless),
        Borrower(last, effect(subject, last, "2")),
    )
    assert isinstance(outcomes[1], apsw.ConstraintError if heard else BadInput)
    assert subject.effects() == ["1", "2"]
    assert sorted(row["name"] for row in subject.rows("steps")) == ["1", "2"]
    for held in (first, bad, last):
        check_chain(store.history(held.fence.job_id))
    done(store, step(bad, clock))


def test_a_body_whose_answers_cannot_be_repeated_is_told_to_run_again(subject: SqliteSubject):
    store, clock = subject.store, subject.clock
    chance, stuck = held_job(store, clock), held_job(store, clock)

    def draws(transaction: Transaction) -> RecordStep:
        transaction.execute("INSERT INTO effects VALUES (random()) RETURNING value")
        return step(chance, clock)

    def spins(transaction: Transaction) -> RecordStep:
        subject.spin(transaction)
        raise AssertionError("interrupted")

    lucky, unlucky = run(subject, Borrower(chance, draws), Borrower(stuck, spins, ms_max=100))
    assert isinstance(unlucky, TxTooLong)
    assert isinstance(lucky, TallyError)
    assert subject.effects() == []
    (again,) = run(subject, Borrower(chance, draws))
    assert isinstance(again, RecordStep)


def test_a_body_that_only_reads_too_long_is_interrupted(subject: SqliteSubject):
    held = held_job(subject.store, subject.clock)

    def reads(transaction: Transaction) -> RecordStep:
        transaction.execute(f"SELECT count(*) FROM ({ENDLESS})")
        raise AssertionError("interrupted")

    (outcome,) = run(subject, Borrower(held, reads, ms_max=100))
    assert isinstance(outcome, TxTooLong)


def test_a_refused_bundle_lets_the_thread_go_that_waits_for_its_turn(subject: SqliteSubject):
    gone = held_job(subject.store, subject.clock, lease_ms=1)
    subject.clock.advance(1)
    waiting = Borrower(gone, effect(subject, gone, "never"))
    assert isinstance(waiting.request, RunTx)
    subject.store.apply([(step(gone, subject.clock), waiting.request)])
    waiting.join()
    assert subject.effects() == []


def test_the_holder_of_the_write_lock_can_be_named(subject: SqliteSubject):
    assert holder(subject.path) is None
    with subject.store.transaction():
        assert holder(subject.path).pid == os.getpid()
    assert holder(subject.path) is None
    assert holder(subject.path.with_name("nothing.db")) is None
