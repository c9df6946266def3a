"""The clocks of workers and submitters may be wrong by an hour: due times are by that of the server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tallystick import Tally, gather, sleep
from tallystick.clock import SystemClock, VirtualClock
from tallystick.testing.conformance.drafts import done, submission
from tallystick.worker.caretaker import Caretaker
from tallystick.worker.worker import WorkerOptions
from tests.postgres.server import Server
from tests.postgres.subject import PostgresSubject, fresh_schema

HOUR = 3_600_000
WRONG = pytest.mark.parametrize("wrong_by", [-HOUR, HOUR], ids=["behind", "ahead"])
SECONDS = 15


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
    caretaker = Caretaker(worker)  # type: ignore[arg-type]  # what it looks at, and nothing else
    start = clock.boot_ms()
    caretaker._look()
    clock.jump_wall(-HOUR)
    caretaker._look()
    clock.advance(1_000)
    caretaker._look()
    assert pokes == [start, start + 1_000]
