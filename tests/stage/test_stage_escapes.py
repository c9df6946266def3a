"""What a function raises that is no `Exception` is a fact about its item; it ends no lane and hangs none."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from tallystick.errors import StageFault
from tallystick.stage import Stage, Summary
from tallystick.stage.outcome import FAIL, SUCCESS
from tests.stage.stage_books import Committed, no_lease_is_left

ESCAPES = ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "Foreign"]
PATIENCE = 30


class Foreign(BaseException):
    """What a test runner or a framework may raise past everybody who catches `Exception`."""


def escape(item: str) -> str:
    if item == "SystemExit":
        sys.exit("enough")
    if item in {"KeyboardInterrupt", "GeneratorExit"}:
        raise {"KeyboardInterrupt": KeyboardInterrupt, "GeneratorExit": GeneratorExit}[item]
    if item == "Foreign":
        raise Foreign
    return item


async def escape_async(item: str) -> str:
    await asyncio.sleep(0)
    if item == "awaits what was cancelled":
        cancelled = asyncio.get_running_loop().create_future()
        cancelled.cancel()
        await cancelled
    if item == "cancels itself":
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
    return escape(item)


def patiently(stage: Stage, items: list[str]) -> Summary:
    async def main() -> Summary:
        return await asyncio.wait_for(stage.run_async(items), PATIENCE)

    return asyncio.run(main())


@pytest.mark.parametrize("lane", ["threads", "processes"])
def test_what_a_plain_function_raises_past_exception_fails_its_item_only(lane: str):
    committed = Committed()
    stage = Stage(escape, commit=committed, lane=lane, workers=1)
    summary = stage.run(["first", *ESCAPES, "last"])
    assert summary.complete
    assert [outcome.state for outcome in committed.outcomes] == [SUCCESS, FAIL, FAIL, FAIL, FAIL, SUCCESS]
    assert [outcome.failure.type for outcome in committed.outcomes if outcome.failure] == ESCAPES
    assert committed.outcomes[1].failure.message == "enough"
    assert summary.retried == 0


@pytest.mark.parametrize("timeout", [None, "20s"])
def test_what_an_async_function_raises_past_exception_fails_its_item_only(timeout: str | None):
    committed = Committed()
    stage = Stage(escape_async, commit=committed, workers=2, timeout=timeout)
    kinds = ["awaits what was cancelled", "SystemExit", "GeneratorExit", "Foreign"]
    summary = patiently(stage, ["first", *kinds, "last"])
    assert summary.complete
    assert [outcome.state for outcome in committed.outcomes] == [SUCCESS, FAIL, FAIL, FAIL, FAIL, SUCCESS]
    found = [outcome.failure.type for outcome in committed.outcomes if outcome.failure]
    assert found == ["CancelledError", *kinds[1:]]


def test_an_interrupt_that_no_keyboard_sent_fails_its_item_in_a_loop_beside_the_main_thread():
    committed = Committed()
    stage = Stage(escape_async, commit=committed)
    running = threading.Thread(target=stage.run, args=(["KeyboardInterrupt", "last"],), daemon=True)
    running.start()
    running.join(PATIENCE)
    assert [outcome.state for outcome in committed.outcomes] == [FAIL, SUCCESS]


def test_an_interrupt_in_the_loop_of_the_main_thread_is_the_persons_and_ends_the_stage():
    stage = Stage(escape_async, workers=1)
    with pytest.raises(KeyboardInterrupt):
        stage.run(["first", "KeyboardInterrupt", "last"])
    assert no_lease_is_left(stage)


def test_whoever_wants_anything_tried_again_means_an_exit_too():
    tries: list[int] = []

    def compute(item: int) -> int:
        tries.append(item)
        if len(tries) < 3:
            sys.exit()
        return item

    assert Stage(compute, retry=3, workers=1).run([7]).ok
    assert tries == [7, 7, 7]


def test_a_function_that_cancels_its_own_task_fails_its_item_where_attempts_have_tasks():
    committed = Committed()
    patiently(Stage(escape_async, commit=committed, timeout="20s"), ["cancels itself", "last"])
    assert [outcome.state for outcome in committed.outcomes] == [FAIL, SUCCESS]


def test_a_function_that_cancels_a_task_of_the_stage_ends_it_with_a_clear_error():
    stage = Stage(escape_async, workers=1)
    with pytest.raises(StageFault, match="cancelled from outside"):
        patiently(stage, ["cancels itself", "last"])
    assert no_lease_is_left(stage)


def test_an_input_that_raises_a_cancellation_of_its_own_ends_the_stage_with_a_clear_error():
    async def items():
        yield "first"
        raise asyncio.CancelledError

    async def main() -> Summary:
        return await asyncio.wait_for(Stage(escape_async).run_async(items()), PATIENCE)

    with pytest.raises(StageFault, match="cancelled from outside"):
        asyncio.run(main())
