"""Looking for work: a job that becomes due while the worker looks is not overlooked."""

from __future__ import annotations

from types import SimpleNamespace

from tallystick.clock import VirtualClock
from tallystick.worker.caretaker import Caretaker
from tallystick.worker.worker import WorkerOptions


def test_a_job_that_becomes_due_between_the_claim_and_the_look_is_asked_for_again():
    clock = VirtualClock()
    due_at = clock.wall_ms() + 1
    pokes = []

    def claim_finds_nothing_and_time_passes() -> None:
        pokes.append(clock.wall_ms())
        clock.advance(5)

    def next_due(_queues, after: int) -> int | None:
        return due_at if due_at > after else None

    store = SimpleNamespace(pulse=lambda: 1, next_due=next_due)
    worker = SimpleNamespace(
        clock=clock,
        store=store,
        options=WorkerOptions(),
        idle=True,
        running={},
        claim_failed=False,
        poke=claim_finds_nothing_and_time_passes,
    )
    caretaker = Caretaker(worker)
    caretaker._look()
    caretaker._look()
    assert len(pokes) == 2


def test_what_was_written_while_a_claim_was_on_its_way_is_looked_for_when_it_is_back():
    """The claim may have read before the write, and its answer says that there is nothing."""
    pulses = iter([1, 1, 2, 2])
    pokes = []
    worker = SimpleNamespace(
        clock=VirtualClock(),
        store=SimpleNamespace(pulse=lambda: next(pulses), next_due=lambda queues, after: None),
        options=WorkerOptions(),
        idle=True,
        running={},
        claim_failed=False,
        poke=lambda: pokes.append(1),
    )
    caretaker = Caretaker(worker)
    caretaker._look()
    caretaker._look()
    assert len(pokes) == 1
    worker.idle = False
    caretaker._look()
    worker.idle = True
    caretaker._look()
    assert len(pokes) == 2
