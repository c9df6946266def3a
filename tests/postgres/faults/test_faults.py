"""P03 to P13: backends die, rows are held, pools are dirty, numbers are large; nothing is lost or doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import psycopg
import pytest

from tallystick.clock import SystemClock
from tallystick.core.ledger.decisions import Reclaim
from tallystick.errors import StaleLease, StoreError, StoreReadOnly, TxTooLong
from tallystick.store.api import Existing, Fence, RecordStep, RenewLeases, StoredEvent, Transaction
from tallystick.store.postgres.server import address as addresses
from tallystick.store.postgres.server import connection as connections
from tallystick.store.postgres.server.connection import AnsweringConnection
from tallystick.store.postgres.server.wire import Wire
from tallystick.store.postgres.store import PostgresStore
from tallystick.testing.conformance.drafts import (
    bundles,
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
from tallystick.testing.conformance.promises.submit_many import alike
from tests.patience import let_time_pass
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject

SECONDS = 30
CLOCK = SystemClock()


class Killer:
    """Kills the backend of whoever sends the statement whose turn it is, before it is run.

    Of statements that travel together those before it are run: the one that kills travels with them.
    """

    def __init__(self, subject: PostgresSubject, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.fired = 0
        self._subject = subject
        original = AnsweringConnection.execute

        def execute(connection: AnsweringConnection, *arguments: object, **options: object) -> object:
            self.left -= 1
            if self.left == 0:
                self.fired += 1
                kill(subject, connection.info.backend_pid)
            return original(connection, *arguments, **options)

        monkeypatch.setattr(AnsweringConnection, "execute", execute)
        original_on_wire = Wire.execute

        def execute_on_wire(wire: Wire, *arguments: object) -> object:
            if wire._gathering:
                self.left -= 1
                if self.left == 0:
                    self.fired += 1
                    original_on_wire(wire, b"SELECT pg_terminate_backend(pg_backend_pid())")
            return original_on_wire(wire, *arguments)

        monkeypatch.setattr(Wire, "execute", execute_on_wire)


def kill(subject: PostgresSubject, pid: int) -> None:
    """End a backend and wait until it is gone."""
    subject.by_hand.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def start(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def joined(thread: threading.Thread) -> None:
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_backend_killed_at_any_statement_of_a_flush_costs_nothing(
    subject: PostgresSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P03: every statement of a flush of every kind, until one passes without meeting the killer."""
    store = subject.open(CLOCK)
    killer = Killer(subject, monkeypatch)
    number = 0
    while True:
        number += 1
        held, ending = held_job(store, CLOCK), held_job(store, CLOCK)
        wish = submission(CLOCK, key=f"k{number}", handler=f"h{number}")
        search = claim(1, handlers=[(f"h{number}", "")])
        before, killer.left = killer.fired, number
        many = alike(CLOCK, 250, handler="later")
        outcomes = store.apply(bundles(step(held, CLOCK), finish(ending, CLOCK), wish, many, search))
        killer.left = 0
        assert outcomes[:4] == [None] * 4, number
        assert isinstance(outcomes[4], list)
        assert [found.fence.job_id for found in outcomes[4]] == [wish.job.job_id]
        for job in (held.fence.job_id, ending.fence.job_id, wish.job.job_id, many.job_ids[-1]):
            check_chain(store.history(job))
        if killer.fired == before:
            break
    store.close()
    assert number > 8


def test_a_backend_killed_at_any_statement_of_a_transaction_is_one_effect(
    subject: PostgresSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = subject.open(CLOCK)
    held = held_job(store, CLOCK)
    killer = Killer(subject, monkeypatch)
    number = 0
    while True:
        number += 1

        def body(db: Transaction, number: int = number) -> RecordStep:
            subject.put_effect(db, str(number))
            return step(held, CLOCK, f"tx{number}")

        before, killer.left = killer.fired, number
        assert isinstance(store.run_tx(held.fence, body, 10_000, 0), RecordStep)
        killer.left = 0
        if killer.fired == before:
            break
    store.close()
    assert number > 6
    assert sorted(map(int, subject.effects())) == list(range(1, number + 1))


@pytest.mark.parametrize(
    ("flush", "other", "end"),
    [("2s", "1h", nullcontext()), ("1h", "1ms", pytest.raises(psycopg.errors.DeadlockDetected))],
    ids=["the flush loses", "the other loses"],
)
def test_a_deadlock_is_tried_again_with_fresh_places(
    subject: PostgresSubject,
    flush: str,
    other: str,
    end: AbstractContextManager[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P07: another locks the rows of a flush in the opposite order; who looks for a deadlock first loses."""
    # Neither gives up because it has waited for long: on a slow machine no deadlock would come about.
    monkeypatch.setattr(addresses, "_LOCK_MS_MAX", 60_000)
    store = PostgresStore(f"{subject.url}&options=-c%20deadlock_timeout%3D{flush}", CLOCK)
    one, two = sorted((held_job(store, CLOCK) for _ in range(2)), key=lambda held: held.fence.job_id)
    outcomes: list[object] = []
    lock = "SELECT 1 FROM attempts WHERE job_id = %s FOR UPDATE"
    with subject.by_hand.transaction():
        subject.by_hand.execute(lock, [two.fence.job_id])
        flushing = start(lambda: outcomes.extend(store.apply([(step(one, CLOCK),), (step(two, CLOCK),)])))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        with psycopg.connect(subject.dsn, autocommit=True) as watch:
            while watch.execute(waiting).fetchone() == (0,):
                pass
        with end, subject.by_hand.transaction():
            subject.by_hand.execute(f"SET LOCAL deadlock_timeout = '{other}'")
            subject.by_hand.execute(lock, [one.fence.job_id])
    joined(flushing)
    assert outcomes == [None, None]
    for held in (one, two):
        check_chain(store.history(held.fence.job_id))
    store.close()


def test_a_body_that_lost_against_another_transaction_runs_again(subject: PostgresSubject) -> None:
    held = held_job(subject.store, subject.clock)
    runs: list[int] = []

    def body(db: Transaction) -> RecordStep:
        runs.append(1)
        subject.put_effect(db, "once")
        if len(runs) < 3:
            db.execute("DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = 'serialization_failure'; END $$")
        return step(held, subject.clock)

    subject.store.run_tx(held.fence, body, 10_000, 0)
    assert len(runs) == 3
    assert subject.effects() == ["once"]
    check_chain(subject.store.history(held.fence.job_id))


def test_a_long_transaction_delays_no_renewal_and_is_not_reclaimed_under_its_feet(
    subject: PostgresSubject,
) -> None:
    """Model, section 8: heartbeat and sweep pass the held row by; the lease is checked again at the end."""
    store, clock = subject.store, subject.clock
    long, other = held_job(store, clock, lease_ms=1_000), held_job(store, clock, lease_ms=1_000)
    inside, go_on = threading.Event(), threading.Event()
    ended: list[object] = []

    def body(db: Transaction) -> RecordStep:
        subject.put_effect(db, "kept")
        inside.set()
        go_on.wait(SECONDS)
        return step(long, clock)

    def run() -> None:
        try:
            ended.append(store.run_tx(long.fence, body, 30_000, 1_000))
        except StaleLease as error:
            ended.append(error)

    for late in (False, True):
        inside.clear()
        go_on.clear()
        thread = start(run)
        assert inside.wait(SECONDS)
        if late:
            clock.advance(1_000)
            (expired,) = [gone for gone in store.expired(10) if gone.fence == long.fence]
            assert done(store, reclaim(expired)) is Reclaim.LEAVE, "held: not ours to take"
        else:
            clock.advance(600)
            assert done(store, RenewLeases((long.fence, other.fence), 1_000)) == {long.fence, other.fence}
        go_on.set()
        joined(thread)
    assert isinstance(ended[0], RecordStep)
    assert isinstance(ended[1], StaleLease)
    assert subject.effects() == ["kept"]


def test_a_transaction_renews_its_own_lease_when_it_ends(subject: PostgresSubject) -> None:
    store, clock = subject.store, subject.clock
    held = held_job(store, clock, lease_ms=1_000)
    clock.advance(900)
    store.run_tx(held.fence, lambda _db: step(held, clock), 10_000, 1_000)
    clock.advance(900)
    done(store, finish(held, clock))


def test_a_body_that_thinks_too_long_loses_its_connection_and_its_rows(subject: PostgresSubject) -> None:
    held = held_job(subject.store, subject.clock)

    def body(db: Transaction) -> RecordStep:
        subject.put_effect(db, "never")
        let_time_pass(0.6)
        subject.put_effect(db, "never")
        raise AssertionError("the server should have hung up")

    with pytest.raises(TxTooLong):
        subject.store.run_tx(held.fence, body, 200, 0)
    assert subject.effects() == []
    done(subject.store, step(held, subject.clock))


def test_parallel_steps_and_transactions_of_one_job_keep_one_chain(subject: PostgresSubject) -> None:
    """The committer and users' transactions write for one job at once: no place is taken twice."""
    store = subject.open(CLOCK)
    held = held_job(store, CLOCK)
    failures: list[BaseException] = []

    def transactions(lane: int) -> None:
        for number in range(15):

            def body(db: Transaction, number: int = number) -> RecordStep:
                subject.put_effect(db, f"{lane}-{number}")
                if number % 5 == 4:
                    raise ValueError("changed its mind")
                return step(held, CLOCK, f"tx-{lane}-{number}")

            end = pytest.raises(ValueError, match="its mind") if number % 5 == 4 else nullcontext()
            try:
                with end:
                    store.run_tx(held.fence, body, 10_000, 0)
            except BaseException as error:  # noqa: BLE001 (reported below)
                failures.append(error)

    def steps() -> None:
        for number in range(40):
            failures.extend(
                outcome
                for outcome in store.apply([(step(held, CLOCK, f"step-{number}"),)])
                if isinstance(outcome, BaseException)
            )

    threads = [start(lambda lane=lane: transactions(lane)) for lane in range(2)] + [start(steps)]
    for thread in threads:
        joined(thread)
    assert failures == []
    history: list[StoredEvent] = store.history(held.fence.job_id)
    check_chain(history)
    assert len(history) == 2 + 40 + 24
    assert len(subject.effects()) == 24
    store.close()


def test_a_pool_never_hands_on_an_open_or_changed_connection(subject: PostgresSubject) -> None:
    """P10."""
    store = subject.store
    with pytest.raises(ZeroDivisionError), store.transaction() as db:  # noqa: PT012 (one block)
        subject.put_effect(db, "never")
        raise ZeroDivisionError
    with pytest.raises(psycopg.errors.SyntaxError), store.transaction() as db:
        db.execute("SELEKT")
    with store.transaction() as db:
        db.execute("SET application_name = 'changed'")
        db.execute("CREATE TEMP TABLE leftover (n INTEGER)")
    for _ in range(6):
        with store.transaction() as db:
            assert db.execute("SELECT current_setting('application_name')") == [("tallystick",)]
            assert db.execute("SELECT to_regclass('leftover')") == [(None,)]
            assert db.execute("SELECT current_setting('statement_timeout')") == [("0",)]
    assert subject.effects() == []
    left = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%%'"
    assert subject.by_hand.execute(left).fetchone() is not None


def test_claims_pass_rows_that_others_hold_and_come_back_for_them(subject: PostgresSubject) -> None:
    """P08: a held row is passed by, not waited for, and is first again when it is free."""
    store, clock = subject.store, subject.clock
    wishes = [
        submission(clock, f"job-{number}", ready_at=clock.wall_ms() - 10 + number) for number in range(3)
    ]
    assert store.apply([(wish,) for wish in wishes]) == [None] * 3
    with subject.by_hand.transaction():
        subject.by_hand.execute("SELECT 1 FROM jobs WHERE job_id = 'job-0' FOR UPDATE")
        assert [held.fence.job_id for held in claimed(store, claim(1))] == ["job-1"]
    assert [held.fence.job_id for held in claimed(store, claim(2))] == ["job-0", "job-2"]


def test_two_sweepers_reclaim_every_lost_lease_once(subject: PostgresSubject) -> None:
    clock = subject.clock
    stores = [subject.open(clock) for _ in range(2)]
    for _ in range(30):
        held_job(subject.store, clock, lease_ms=10)
    clock.advance(10)
    ended: list[object] = []

    def sweep(store: PostgresStore) -> None:
        bundles = [(reclaim(gone),) for gone in store.expired(100)]
        ended.extend(outcome for outcome in store.apply(bundles) if outcome is Reclaim.RETRY)

    for thread in [start(lambda store=store: sweep(store)) for store in stores]:
        joined(thread)
    assert len(ended) + len(subject.store.expired(100)) == 30
    sweep(subject.store)
    assert len(ended) == 30
    assert subject.store.expired(100) == []
    for job in subject.rows("jobs"):
        history = subject.store.history(job["job_id"])
        check_chain(history)
        assert [event.type for event in history] == ["submit", "claim", "reclaim"]
    for store in stores:
        store.close()


def test_a_sweep_that_is_interrupted_leaves_everything_to_the_next(
    subject: PostgresSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L09: an error of a sweep is an error of that sweep; the leases are found again by whoever looks."""
    clock = subject.clock
    held = held_job(subject.store, clock, lease_ms=10)
    clock.advance(10)
    (gone,) = subject.store.expired(5)
    monkeypatch.setattr("tallystick.store.postgres.talking.FLUSH_TRIES_MAX", 1)
    killer = Killer(subject, monkeypatch)
    killer.left = 2
    with pytest.raises(Exception, match=r"terminat|closed|lost"):
        subject.store.apply([(reclaim(gone),)])
    assert killer.fired == 1
    (again,) = subject.store.expired(5)
    assert again.fence == held.fence
    assert subject.store.apply([(reclaim(again),)]) == [Reclaim.RETRY]
    assert [found.fence.attempt for found in claimed(subject.store, claim())] == [2]


def test_numbers_are_wide_enough_for_ever(subject: PostgresSubject) -> None:
    """P13."""
    narrow = subject.by_hand.execute(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = %s AND data_type IN ('integer', 'smallint')",
        [subject.schema],
    ).fetchall()
    assert narrow == []
    subject.by_hand.execute("SELECT setval(pg_get_serial_sequence('stale_reports', 'id'), 2147483646)")
    held = held_job(subject.store, subject.clock)
    late = held._replace(fence=Fence(held.fence.job_id, 9, "another"))
    for _ in range(3):
        assert isinstance(outcome_of(subject.store, step(late, subject.clock)), StaleLease)
    assert max(row["id"] for row in subject.rows("stale_reports")) > 2**31


def test_a_replica_is_refused(subject: PostgresSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    """P06: what a replica says may be old."""
    pretends = b"SELECT true, '', '', ''"
    monkeypatch.setattr(connections, "sql", lambda name: pretends)
    with pytest.raises(StoreReadOnly, match="replica"):
        PostgresStore(subject.url, CLOCK)


def test_a_key_held_by_a_transaction_that_ends_badly_is_free(
    subject: PostgresSubject, server: Server
) -> None:
    """The second submission waits for the first to end, and is the first if that one never was."""
    store = subject.open(CLOCK)
    outcomes: list[object] = []
    wish = submission(CLOCK, key="k")
    with pytest.raises(ZeroDivisionError), subject.store.transaction() as db:  # noqa: PT012 (one block)
        assert db.apply((submission(subject.clock, key="k"),)) is None
        second = start(lambda: outcomes.extend(store.apply([(wish,)])))
        raise ZeroDivisionError
    joined(second)
    assert outcomes == [None]
    assert isinstance(outcome_of(store, submission(CLOCK, key="k")), Existing)
    store.close()


def test_a_backend_that_dies_behind_the_last_statement_of_a_transaction_is_told_as_an_error_of_the_store(
    subject: PostgresSubject,
) -> None:
    """Its number is asked for then: the error of the driver reached the user."""

    def booked() -> None:
        with subject.store.transaction() as db:
            ((pid,),) = db.execute("SELECT pg_backend_pid()")
            db.apply((submission(CLOCK, "gone"),))
            kill(subject, pid)

    with pytest.raises(StoreError):
        booked()
    assert subject.store.job("gone") is None
