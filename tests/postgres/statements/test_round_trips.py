"""How often a flush goes to the server and back: as often for a hundred waits as for one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest

from tallystick import Job, Tally, gather, wait
from tallystick.clock import SystemClock
from tallystick.core.chain import Chain
from tallystick.errors import StaleLease
from tallystick.store.api import (
    Answer,
    Await,
    Bundle,
    CancelJob,
    ClaimedJob,
    Cycle,
    Deliver,
    Delivered,
    EndJob,
    Fact,
    Group,
    NewJob,
    RecordStep,
    Spawn,
    TakeAnswer,
    Transaction,
    Wait,
)
from tallystick.store.postgres.server import address
from tallystick.store.postgres.server.connection import AnsweringConnection, ServerAnswer
from tallystick.store.postgres.server.wire import Wire
from tallystick.testing.conformance.drafts import check_chain, claim, claimed, done, finish, held_job, step
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject


class Trips:
    """Counts waits for the server: a statement on its own, or a pipeline with whatever is in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        # Those of the connection that writes alone.
        self.written = 0
        self._travelling = 0
        execute, pipeline = AnsweringConnection.execute, AnsweringConnection.pipeline

        def counted(connection: AnsweringConnection, *arguments: object, **options: object) -> object:
            self.count += not self._travelling
            return execute(connection, *arguments, **options)

        @contextmanager
        def together(connection: AnsweringConnection) -> Iterator[object]:
            self.count += not self._travelling
            self._travelling += 1
            try:
                with pipeline(connection) as inner:
                    yield inner
            finally:
                self._travelling -= 1

        exchange, execute_now = Wire.exchange, Wire._execute_now

        def exchanged(wire: Wire) -> None:
            self.count += bool(wire._commands)
            self.written += bool(wire._commands)
            exchange(wire)

        def executed(wire: Wire, *arguments: Any) -> ServerAnswer:
            self.written += 1
            return execute_now(wire, *arguments)

        monkeypatch.setattr(Wire, "exchange", exchanged)
        monkeypatch.setattr(Wire, "_execute_now", executed)
        monkeypatch.setattr(AnsweringConnection, "execute", counted)
        monkeypatch.setattr(AnsweringConnection, "pipeline", together)

    def of(self, subject: PostgresSubject, batch: list[Bundle]) -> tuple[int, list[object]]:
        """Apply a batch; return how often it went to the server, and its outcomes."""
        before = self.count
        outcomes = subject.store.apply(batch)
        return self.count - before, list(outcomes)


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Trips:
    return Trips(monkeypatch)


def waiting(held: ClaimedJob, subject: PostgresSubject, name: str = "go") -> Bundle:
    fact = Fact(held.chain, "suspend", subject.clock.wall_ms(), held.fence.attempt, "{}")
    return (Await(held.fence, held.driver, held.dimension, (Wait("wait", name, 1, None),), fact),)


def told(job_id: str, subject: PostgresSubject, name: str = "go") -> Bundle:
    return (Deliver(f"{job_id}:{name}", job_id, "signal", name, '"yes"'),)


def family(parent: ClaimedJob, subject: PostgresSubject, size: int) -> Bundle:
    now = subject.clock.wall_ms()
    children = []
    for number in range(size):
        job_id = Group(0, "gather", 1).child_id(parent.fence.job_id, number)
        job = NewJob(job_id, "{}", now, None, now, "default", "workflow", "child", "", "default", 5, "{}")
        children.append((job, Fact(Chain(job_id), "submit", now, 0, "{}")))
    return (Spawn(parent.fence, parent.chain, Group(0, "gather", 1), size, 0, False, tuple(children), now),)


def course(subject: PostgresSubject, trips: Trips, size: int) -> dict[str, int]:
    """Let that many jobs wait, be told and end, and as many children end or be cancelled; count trips."""
    store, clock = subject.store, subject.clock
    taken: dict[str, int] = {}
    jobs = [held_job(store, clock) for _ in range(size)]
    names = [job.fence.job_id for job in jobs]
    taken["suspend"], outcomes = trips.of(subject, [waiting(job, subject) for job in jobs])
    assert outcomes == [None] * size
    taken["deliver"], outcomes = trips.of(subject, [told(name, subject) for name in names])
    assert outcomes == [Delivered.WOKE] * size
    before = trips.count
    again = claimed(store, claim(size))
    taken["claim"] = trips.count - before
    assert sorted(job.driver for job in again) == sorted(f"{name}:go" for name in names)
    taken["answer"], outcomes = trips.of(subject, [waiting(job, subject) for job in again])
    assert all(isinstance(outcome, Answer) and outcome.payload == '"yes"' for outcome in outcomes)
    ends = [(finish(job, clock)._replace(driver=job.driver, waited=True),) for job in again]
    taken["end"], outcomes = trips.of(subject, ends)
    assert outcomes == [None] * size
    for name in names:
        check_chain(store.history(name))
    parent = held_job(store, clock)
    taken["spawn"], outcomes = trips.of(subject, [family(parent, subject, 2 * size)])
    assert outcomes == [False]
    children = claimed(store, claim(size, handlers=[("child", "")]))
    home = (parent.fence.job_id, "0:gather#1")
    closed = [(finish(child, clock)._replace(parent=home),) for child in children]
    taken["close children"], outcomes = trips.of(subject, closed)
    assert outcomes == [None] * size
    rest = [row["job_id"] for row in subject.rows("jobs") if row["state"] == "QUEUED"]
    taken["cancel children"], outcomes = trips.of(subject, [(CancelJob(name, 1_000),) for name in rest])
    assert outcomes == ["CANCELLED"] * size
    (group,) = [row for row in subject.rows("steps") if row["kind"] == "group"]
    assert (group["semaphore"], group["failed"], group["ledger"]) == (0, size, 1_111_100_000_000 + 2 * size)
    messages = [row for row in subject.rows("messages") if row["kind"] == "child"]
    digits = sorted(f"{row['ledger']:015d}" for row in messages)
    ordinals = range(1, 2 * size + 1)
    assert digits == sorted(f"{'0001111' if n == 2 * size else '0000110'}{n:08d}" for n in ordinals)
    assert [row["guid"] for row in subject.rows("messages") if row["guid"].startswith("join:")] == [
        f"join:{parent.fence.job_id}:0:gather#1"
    ]
    return taken


def test_a_hundred_waits_take_as_many_round_trips_as_two(server, trips: Trips) -> None:
    counted = []
    for size in (2, 100):
        with closing(PostgresSubject(server)) as subject:
            counted.append(course(subject, trips, size))
    assert counted[0] == counted[1]
    assert max(counted[1].values()) <= 4, counted


def test_a_refused_bundle_plans_nothing_and_spoils_nobody(subject: PostgresSubject, trips: Trips) -> None:
    jobs = [held_job(subject.store, subject.clock) for _ in range(64)]
    gone = jobs[40]._replace(fence=jobs[40].fence._replace(lease_id="another"))
    batch = [waiting(gone if job is jobs[40] else job, subject) for job in jobs]
    taken, outcomes = trips.of(subject, batch)
    assert isinstance(outcomes.pop(40), StaleLease)
    assert outcomes == [None] * 63
    assert [row["report"] for row in subject.rows("stale_reports")] == ["Await"]
    assert taken <= 3
    for job in jobs:
        check_chain(subject.store.history(job.fence.job_id))


def test_a_transaction_of_one_statement_is_three_round_trips(subject: PostgresSubject, trips: Trips) -> None:
    """The first takes hold of the fence, the last records and commits."""
    held = held_job(subject.store, subject.clock)

    def body(db: Transaction, name: str) -> RecordStep:
        subject.put_effect(db, name)
        return step(held, subject.clock, name)

    subject.store.run_tx(held.fence, lambda db: body(db, "first"), 10_000, 30_000)
    before = trips.count
    subject.store.run_tx(held.fence, lambda db: body(db, "second"), 10_000, 30_000)
    # The user's own statement goes through a cursor of his, which is not counted here.
    assert trips.count - before == 2
    assert subject.effects() == ["first", "second"]


def test_a_transaction_whose_fence_is_gone_at_its_end_leaves_nothing(subject: PostgresSubject) -> None:
    """Its COMMIT travels behind a question; the question fails, and COMMIT is never reached."""
    held = held_job(subject.store, subject.clock, lease_ms=1_000)

    def body(db: Transaction) -> RecordStep:
        subject.put_effect(db, "never")
        subject.clock.advance(1_000)
        return step(held, subject.clock)

    with pytest.raises(StaleLease):
        subject.store.run_tx(held.fence, body, 10_000, 1_000)
    assert subject.effects() == []
    assert subject.rows("steps") == []
    assert [row["report"] for row in subject.rows("stale_reports")] == ["RecordStep"]


def test_many_signals_for_one_job_are_one_round(subject: PostgresSubject, trips: Trips) -> None:
    held = held_job(subject.store, subject.clock)
    done(subject.store, *waiting(held, subject))
    name = held.fence.job_id
    batch: list[Bundle] = [(Deliver(f"g{n}", name, "signal", "go", str(n)),) for n in range(50)]
    taken, outcomes = trips.of(subject, batch)
    assert outcomes == [Delivered.WOKE, *[Delivered.KEPT] * 49]
    assert taken <= 8
    (again,) = claimed(subject.store, claim())
    outcome = done(subject.store, *waiting(again, subject))
    assert isinstance(outcome, Answer)
    assert outcome.payload == "0"


def test_many_answers_that_were_known_are_written_as_one(subject: PostgresSubject, trips: Trips) -> None:
    store, clock = subject.store, subject.clock
    held = held_job(store, clock)
    name = held.fence.job_id
    store.apply([(Deliver(f"g{n}", name, "signal", "go", str(n)),) for n in range(60)])
    (wait,) = waiting(held, subject)
    assert isinstance(wait, Await)
    answer = done(store, wait._replace(ahead=50))
    assert isinstance(answer, Answer)
    assert len(answer.ahead) == 50
    takes = [
        TakeAnswer(held.fence, held.chain, 0, Wait("wait", "go", 2 + n, None), wake, clock.wall_ms())
        for n, wake in enumerate(answer.ahead)
    ]
    last = wait._replace(waits=(Wait("wait", "go", 52, None),), ahead=50)
    taken, (outcome,) = trips.of(subject, [(*takes, last)])
    assert isinstance(outcome, Answer)
    assert (outcome.payload, len(outcome.ahead)) == ("51", 8)
    assert taken <= 3
    check_chain(store.history(name))


def test_a_turn_and_the_claim_of_it_are_one_flush(subject: PostgresSubject, trips: Trips) -> None:
    """A look, the turn with the search, a look at what woke the job, its entry with COMMIT."""
    store, clock = subject.store, subject.clock
    held = held_job(store, clock)
    fact = Fact(held.chain, "again", clock.wall_ms(), held.fence.attempt, "{}")
    turn = Cycle(held.fence, held.driver, 0, "{}", fact)
    taken, (none, found) = trips.of(subject, [(turn,), (claim(),)])
    assert none is None
    assert isinstance(found, list)
    assert [(job.fence.job_id, job.dimension) for job in found] == [(held.fence.job_id, 1)]
    assert taken <= 4


def test_an_entry_that_is_refused_behind_its_claim_refuses_nothing_else(subject: PostgresSubject) -> None:
    """It travels with COMMIT, which is then not reached; what else was in the flush is written alone."""
    store, clock = subject.store, subject.clock
    sleeper, other = held_job(store, clock), held_job(store, clock)
    done(store, *waiting(sleeper, subject))
    done(store, *told(sleeper.fence.job_id, subject))
    subject.by_hand.execute(
        "CREATE TRIGGER stop BEFORE UPDATE ON messages FOR EACH ROW WHEN (NEW.ledger > 0)"
        " EXECUTE FUNCTION refuse_change('NO: for this test')"
    )
    assert store.apply([(finish(other, clock),), (claim(),)]) == [None, []]
    rows = {row["job_id"]: (row["state"], row["attempt"], row["hold"]) for row in subject.rows("jobs")}
    assert rows[other.fence.job_id] == ("SUCCEEDED", 1, None)
    assert rows[sleeper.fence.job_id] == ("IN_PROGRESS", 1, "REFUSED"), "it was not claimed, and is held"
    check_chain(store.history(other.fence.job_id))


WHOLE_JOBS_TRIES = 5


def waits(subject: PostgresSubject, job: Job[int]) -> bool:
    """Tell whether a job has been put away."""
    return any(row["job_id"] == job.id for row in subject.rows("steps"))


def whole_job(
    subject: PostgresSubject, app: Tally, trips: Trips, submit: Callable[[], Job[int]], signal: str = ""
) -> int:
    """Return how often the writing connection goes to the server for one job from its submission to its end.

    The least of a few jobs: a busy machine may split a flush, or look for work once more.
    """
    runtime, least = app.runtime(), sys.maxsize
    for _ in range(WHOLE_JOBS_TRIES):
        wait_until(lambda: not runtime.worker.running)
        before = trips.written
        job = submit()
        if signal:
            wait_until(partial(waits, subject, job))
            wait_until(lambda: not runtime.worker.running)
            job.send(signal, 7)
        assert job.result(timeout=30) == 7
        least = min(least, trips.written - before)
    return least


def test_a_whole_job_that_waits_or_gathers_takes_few_round_trips(
    subject: PostgresSubject, trips: Trips
) -> None:
    app = Tally(subject.url)

    @app.workflow
    def waiter() -> int:
        return wait("go", int)

    @app.workflow
    def leaf(number: int) -> int:
        return number

    @app.workflow
    def fan(children: int) -> int:
        return 7 + 0 * sum(gather(*(leaf.child(number) for number in range(children))))

    with closing(app), app.worker(concurrency=64):
        assert whole_job(subject, app, trips, waiter.submit, "go") <= 14
        assert whole_job(subject, app, trips, lambda: fan.submit(3)) <= 16
        assert whole_job(subject, app, trips, lambda: fan.submit(30)) <= 24


def test_a_child_that_ends_and_its_parent_that_waits_in_one_flush_do_not_miss_each_other(
    subject: PostgresSubject,
) -> None:
    """The wake-up must not fall between the look and the suspension, though one transaction has both."""
    store, clock = subject.store, subject.clock
    for number in range(4):
        parent = held_job(store, clock)
        done(store, *family(parent, subject, 1))
        (child,) = claimed(store, claim(1, handlers=[("child", "")]))
        home = (parent.fence.job_id, "0:gather#1")
        end: EndJob = finish(child, clock)._replace(parent=home)
        fact = Fact(parent.chain, "suspend", clock.wall_ms(), parent.fence.attempt, "{}")
        wait = Await(parent.fence, parent.driver, 0, (Wait("group", "gather", 1, None),), fact)
        batch: list[Bundle] = [(end,), (wait,)]
        outcomes = store.apply(batch if number % 2 else batch[::-1])
        joined = outcomes[1 if number % 2 else 0]
        if joined is None:
            (again,) = claimed(store, claim(1))
            assert again.fence.job_id == parent.fence.job_id
        else:
            assert isinstance(joined, Answer)


def test_a_claim_finds_the_timer_that_made_its_job_due_though_its_flush_began_before(
    subject: PostgresSubject, monkeypatch
) -> None:
    """Found by the crash sweep: a flush had read the time, waited for a row, and claimed after the timer."""
    monkeypatch.setattr(address, "_LOCK_MS_MAX", 20_000)
    clock = SystemClock()
    store = subject.open(clock)
    sleeper, other = held_job(store, clock), held_job(store, clock)
    due_at = clock.wall_ms() + 300
    fact = Fact(sleeper.chain, "suspend", clock.wall_ms(), 1, "{}")
    nap = Await(sleeper.fence, "start", 0, (Wait("sleep", "nap", 1, due_at),), fact)
    done(store, nap)
    outcomes: list[object] = []
    with subject.by_hand.transaction():
        subject.by_hand.execute("SELECT 1 FROM attempts WHERE job_id = %s FOR UPDATE", [other.fence.job_id])
        wait = Await(
            other.fence, "start", 0, (Wait("wait", "go", 1, None),), fact._replace(chain=other.chain)
        )
        flush = threading.Thread(target=lambda: outcomes.extend(store.apply([(wait,), (claim(),)])))
        flush.start()
        wait_until(lambda: clock.wall_ms() > due_at + 50)
    flush.join(30)
    assert outcomes[0] is None
    (again,) = outcomes[1]
    assert again.driver == f"{sleeper.fence.job_id}:0:nap#1:timer"  # type: ignore[has-type]  # a claimed job
    store.close()
