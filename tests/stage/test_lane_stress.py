"""Real lanes under schedules that tear at them: tiny windows, a full buffer, failing items, early stops.

The rules are searched exhaustively in `test_flow`. What is left to get wrong is a lost wake-up, and that
shows here as a stage that does not end: every run has a watchdog far above what it needs.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading

import pytest

from tallystick.core.lifecycles import SlotState
from tallystick.core.retry import RetryPolicy
from tallystick.stage import CommitBatch, Stage, WindowLimits
from tests.patience import let_time_pass

ROUNDS = 60
PATIENCE_SECONDS = 30
RETRY = RetryPolicy(attempts_max=4, base_ms=1, jitter=0.0, retryable=frozenset({"OSError"}))


@pytest.fixture(autouse=True)
def _restless_interpreter():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Scenario:
    """Everything about one round, drawn from its seed; compute and commit keep their own books."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.total = draw.randrange(0, 60)
        self.workers = draw.randrange(1, 6)
        self.windows = WindowLimits(count=draw.randrange(1, 5), active=draw.randrange(1, 4))
        self.buffer_bytes = draw.choice([1, 60, 1e9])
        self.flaky = {draw.randrange(60) for _ in range(draw.randrange(8))}
        self.slow = {draw.randrange(60) for _ in range(draw.randrange(8))}
        self.tries: dict[int, int] = {}
        self.committed: list[int] = []

    def fails(self, item: int) -> bool:
        self.tries[item] = self.tries.get(item, 0) + 1
        return item in self.flaky and self.tries[item] < 3

    def commit(self, batch: CommitBatch) -> None:
        assert batch.first == len(self.committed)
        self.committed += [outcome.value for outcome in batch.outcomes]

    def stage(self, function) -> Stage:
        return Stage(
            function,
            commit=self.commit,
            workers=self.workers,
            windows=self.windows,
            buffer_bytes=self.buffer_bytes,
            retry=RETRY,
            grace="0s",
        )


def ends_in_time(work) -> None:
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (shown by the thread that waits)
            failed.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive(), "the stage does not end"
    if failed:
        raise failed[0]


@pytest.mark.parametrize("block", range(3))
def test_threads_never_stand_still(block: int):
    for seed in range(block * ROUNDS, (block + 1) * ROUNDS):
        scenario = Scenario(seed)

        def compute(item: int, scenario: Scenario = scenario) -> int:
            if item in scenario.slow:
                let_time_pass(0.002)
            if scenario.fails(item):
                raise OSError(item)
            return item

        stage = scenario.stage(compute)
        ends_in_time(lambda stage=stage, scenario=scenario: stage.run(iter(range(scenario.total))))
        assert scenario.committed == list(range(scenario.total)), seed


def test_tasks_never_stand_still():
    for seed in range(ROUNDS):
        scenario = Scenario(seed)

        async def compute(item: int, scenario: Scenario = scenario) -> int:
            if item in scenario.slow:
                await asyncio.sleep(0.001)
            if scenario.fails(item):
                raise OSError(item)
            return item

        async def items(scenario: Scenario = scenario):
            for number in range(scenario.total):
                if number in scenario.flaky:
                    await asyncio.sleep(0.001)
                yield number

        stage = scenario.stage(compute)
        ends_in_time(lambda stage=stage, items=items: asyncio.run(stage.run_async(items())))
        assert scenario.committed == list(range(scenario.total)), seed


def test_a_cancel_at_any_moment_ends_with_every_seq_terminal():
    for seed in range(ROUNDS):
        scenario = Scenario(seed)
        stop_at = random.Random(-seed).randrange(60)

        stages: list[Stage] = []

        def compute(item: int, scenario=scenario, stop_at=stop_at, stages=stages) -> int:
            if item == stop_at:
                stages[-1].cancel()
            if scenario.fails(item):
                raise OSError(item)
            return item

        stages.append(scenario.stage(compute))
        ends_in_time(lambda stages=stages, scenario=scenario: stages[0].run(iter(range(scenario.total))))
        assert scenario.committed == list(range(len(scenario.committed))), seed
        flow = stages[-1]._flow
        assert flow is not None
        for window in flow._windows:
            assert min(window.sequence.states(), default=7) >= SlotState.TERMINAL_SUCCESS, seed
