"""The clocks of all who use a server may be wrong by an hour or a year: the server's clock counts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tallystick import Retry, Tally, gather, sleep, wait
from tallystick.clock import SystemClock, VirtualClock
from tallystick.engine.retention import prune
from tallystick.errors import DeadlineExceeded
from tallystick.store.api import CancelJob, Delivered
from tallystick.testing.conformance.drafts import claim, claimed, done, held_job, reclaim, submission
from tallystick.worker.options import WorkerOptions
from tallystick.worker.roles.look import LookForWork
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject, fresh_schema

HOUR, YEAR = 3_600_000, 365 * 86_400_000
WRONG = pytest.mark.parametrize(
    "wrong_by",
    [-YEAR, -HOUR, HOUR, YEAR],
    ids=["a year behind", "an hour behind", "an hour ahead", "a year ahead"],
)
SECONDS = PATIENCE_SECONDS


class WrongClock(SystemClock):
    """The clocks of this machine, but somebody has set the one on the wall."""

    def __init__(self, wrong_by: int) -> None:
        self._wrong_by = wrong_by

    def wall_ms(self) -> int:
        return super().wall_ms() + self._wrong_by


@WRONG
def test_whatever_becomes_due_is_due_in_time_on_a_worker_with_a_wrong_clock(
    server: Server, wrong_by: int
) -> None:
    app = Tally(server.url(schema=fresh_schema()), clock=WrongClock(wrong_by))

    @app.workflow
    def leaf(n: int) -> int:
        sleep("50ms")
        return n

    @app.workflow
    def tree(n: int) -> int:
        return sum(gather(*(leaf.child(number) for number in range(n))))

    with app.worker():
        assert tree.submit(3).result(SECONDS) == 3, "children are due at once"
        assert leaf.opts(delay="200ms").submit(1).result(SECONDS) == 1, "and nobody sleeps past a due job"
    app.close()


@WRONG
def test_the_next_due_job_is_told_by_the_clock_of_who_asks(subject: PostgresSubject, wrong_by: int) -> None:
    clock = WrongClock(wrong_by)
    store = subject.open(clock)
    for _ in range(2):
        assert store.next_due(("default",), clock.wall_ms()) is None
    done(store, submission(clock, ready_at=clock.wall_ms() + 10_000))
    before = clock.wall_ms() - 1
    done(store, submission(clock))
    due = store.next_due(("default",), before)
    assert due is not None
    assert due <= clock.wall_ms(), "what became due since is asked for again"
    for _ in range(2):
        due = store.next_due(("default",), clock.wall_ms())
        assert due is not None
        assert 5_000 < due - clock.wall_ms() <= 11_000
    store.close()


def test_a_worker_whose_clock_is_set_back_looks_when_it_was_going_to() -> None:
    clock = VirtualClock()
    due, pokes = clock.wall_ms() + 1_000, []
    worker = SimpleNamespace(
        clock=clock,
        store=SimpleNamespace(pulse=lambda: 1, next_due=lambda _queues, _after: due),
        options=WorkerOptions(),
        idle=True,
        running={},
        claim_failed=False,
        poke=lambda: pokes.append(clock.boot_ms()),
    )
    look = LookForWork(worker, retry=0.5)  # type: ignore[arg-type]  # what it looks at, and nothing else
    start = clock.boot_ms()
    look.run()
    clock.jump_wall(-HOUR)
    look.run()
    clock.advance(1_000)
    look.run()
    assert pokes == [start, start + 1_000]


@WRONG
@pytest.mark.parametrize("who", ["submitter", "sweeper"])
def test_a_job_of_a_lost_worker_is_due_at_once(subject: PostgresSubject, wrong_by: int, who: str) -> None:
    wrong, right = WrongClock(wrong_by), SystemClock()
    submits, sweeps = (wrong, right) if who == "submitter" else (right, wrong)
    store = subject.open(sweeps)
    done(store, submission(submits, options='{"attempts_max":3}'))
    (lost,) = claimed(store, claim(1, lease_ms=1))
    wait_until(lambda: store.expired(10), "the end of the lease")
    (expired,) = store.expired(10)
    done(store, reclaim(expired))
    (held,) = claimed(store, claim(1))
    assert (held.fence.job_id, held.fence.attempt) == (lost.fence.job_id, 2)
    store.close()


@WRONG
def test_a_retry_a_signal_and_a_timeout_come_in_time(server: Server, wrong_by: int) -> None:
    app = Tally(server.url(schema=fresh_schema()), clock=WrongClock(wrong_by))
    outside = Tally(app.url, clock=SystemClock())
    tries = []

    @app.step(retry=Retry(2, first="300ms"))
    def flaky() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("not yet")
        return len(tries)

    @app.workflow
    def flow() -> tuple[int, int | None, int | None]:
        return flaky(), wait("go", int, timeout="1h"), wait("never", int, timeout="300ms")

    with app.worker():
        job = flow.submit()
        wait_until(lambda: len(tries) == 2, "another try")
        wait_until(lambda: outside.job(job.id).send("go", 7) is not Delivered.ABSENT)
        assert job.result(SECONDS) == (2, 7, None)
    outside.close()
    app.close()


@WRONG
def test_the_grace_of_a_cancellation_is_by_the_clock_of_the_server(
    subject: PostgresSubject, wrong_by: int
) -> None:
    store = subject.open(WrongClock(wrong_by))
    one, other = (held_job(store, SystemClock(), lease_ms=60_000).fence.job_id for _ in range(2))
    done(store, CancelJob(one, 600_000))
    done(store, CancelJob(other, 1))
    wait_until(lambda: store.overdue(10), "the end of the grace")
    assert store.overdue(10) == [(other, False)]
    store.close()


@WRONG
@pytest.mark.parametrize("who", ["submitter", "worker"])
def test_a_deadline_is_as_far_away_as_it_was_told(server: Server, wrong_by: int, who: str) -> None:
    url, wrong, right = server.url(schema=fresh_schema()), WrongClock(wrong_by), SystemClock()
    submitter = Tally(url, clock=wrong if who == "submitter" else right)
    worker = Tally(url, clock=right if who == "submitter" else wrong)
    for app in (submitter, worker):

        @app.workflow
        def nap(duration: str) -> str:
            sleep(duration)
            sleep("0s")
            return "done"

    job = submitter.workflows["nap", ""].opts(deadline="10m").submit("300ms")
    late = submitter.workflows["nap", ""].opts(deadline="1ms").submit("1h")
    with worker.worker():
        assert job.result(SECONDS) == "done"
        with pytest.raises(DeadlineExceeded):
            late.result(SECONDS)
    forked = job.fork(at="sleep#1").row()
    assert forked.deadline_at - forked.created_at == 600_000
    submitter.close()
    worker.close()


@WRONG
@pytest.mark.parametrize("who", ["submitter", "pruner"])
def test_books_are_kept_as_long_as_they_were_to_be(server: Server, wrong_by: int, who: str) -> None:
    url, wrong, right = server.url(schema=fresh_schema()), WrongClock(wrong_by), SystemClock()
    submitter = Tally(url, clock=wrong if who == "submitter" else right)
    pruner = Tally(url, clock=right if who == "submitter" else wrong)

    @submitter.workflow
    def flow() -> None: ...

    with submitter.worker():
        flow.submit().result(SECONDS)
    runtime = pruner.runtime()
    assert prune(runtime.committer, 600_000, 10) == 0
    wait_until(lambda: prune(runtime.committer, 1, 10) == 1, "the end of its millisecond")
    submitter.close()
    pruner.close()
