"""A function that wants to end the program ends its own job: the slot, the loop and everybody else go on."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Retry, Tx
from tallystick.errors import JobFailed, StepFailed

SECONDS = 20
ESCAPES = [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, StopIteration]


@pytest.fixture
def flows(app):
    """Return workflows that raise what they are told in every place where a user's code runs."""
    kinds = {kind.__name__: kind for kind in ESCAPES}

    @app.step
    def step(kind: str) -> None:
        raise kinds[kind]

    @app.step(timeout="1m")
    def timed(kind: str) -> None:
        raise kinds[kind]

    @app.tx
    def change(db: Tx, kind: str) -> None:
        raise kinds[kind]

    @app.step
    async def async_step(kind: str) -> None:
        raise kinds[kind]

    @app.step(timeout="1m")
    async def async_timed(kind: str) -> None:
        raise kinds[kind]

    @app.workflow
    def in_body(kind: str) -> None:
        raise kinds[kind]

    @app.workflow
    def in_step(kind: str) -> None:
        step(kind)

    @app.workflow
    def in_timed(kind: str) -> None:
        timed(kind)

    @app.workflow
    def in_tx(kind: str) -> None:
        change(kind)

    @app.workflow
    async def in_async_body(kind: str) -> None:
        raise kinds[kind]

    @app.workflow
    async def in_async_step(kind: str) -> None:
        await async_step(kind)

    @app.workflow
    async def in_async_timed(kind: str) -> None:
        await async_timed(kind)

    @app.workflow
    async def in_step_of_async(kind: str) -> None:
        await step.aio(kind)

    @app.workflow
    async def in_tx_of_async(kind: str) -> None:
        await change.aio(kind)

    flows = (in_body, in_step, in_timed, in_tx)
    return *flows, in_async_body, in_async_step, in_async_timed, in_step_of_async, in_tx_of_async


@pytest.mark.parametrize("kind", ESCAPES)
def test_whatever_a_function_raises_ends_its_job_and_nothing_else(app, flows, kind):
    @app.workflow
    def healthy() -> int:
        return 1

    @app.workflow
    async def healthy_too() -> int:
        return 2

    with app.worker(concurrency=1):
        for flow in flows:
            with pytest.raises(JobFailed) as failure:
                flow.submit(kind.__name__).result(SECONDS)
            named = str(failure.value)
            assert kind.__name__ in named or "StopIteration" in named, flow.name
        assert (healthy.submit().result(SECONDS), healthy_too.submit().result(SECONDS)) == (1, 2)


def test_a_step_that_wants_to_exit_is_tried_again_where_that_is_asked_for(app):
    runs = []

    @app.step(retry=Retry(3, first="1ms", on=[SystemExit]))
    def moody() -> int:
        runs.append(1)
        if len(runs) < 3:
            raise SystemExit(2)
        return len(runs)

    @app.workflow
    def flow() -> int:
        return moody()

    with app.worker():
        assert flow.submit().result(SECONDS) == 3


def test_a_cancelled_helper_is_an_error_of_the_step_that_waited_for_it(app):
    runs = []

    @app.step
    async def waits() -> None:
        runs.append(1)
        helper = asyncio.get_running_loop().create_future()
        helper.cancel()
        await helper

    @app.workflow
    async def flow() -> str:
        try:
            await waits()
        except StepFailed as failed:
            return failed.type
        return "nothing was raised"

    with app.worker():
        assert flow.submit().result(SECONDS) == "CancelledError"
    assert runs == [1]


def test_a_limit_around_a_step_is_a_limit_and_no_failure_of_the_step(app):
    @app.step
    async def slow() -> None:
        await asyncio.get_running_loop().create_future()

    @app.workflow
    async def flow() -> str:
        try:
            async with asyncio.timeout(0.01):
                await slow()
        except TimeoutError:
            return "in time"
        return "never"

    with app.worker():
        assert flow.submit().result(SECONDS) == "in time"


def test_a_timeout_of_the_functions_own_is_not_taken_for_that_of_its_step(app):
    @app.step(timeout="1h")
    async def asks() -> None:
        raise TimeoutError("the gateway did not answer")

    @app.workflow
    async def flow() -> str:
        try:
            await asks()
        except StepFailed as failed:
            return str(failed)
        return ""

    with app.worker():
        assert (
            flow.submit().result(SECONDS)
            == "asks failed after 1 try: TimeoutError: the gateway did not answer"
        )


def test_an_error_that_cannot_describe_itself_is_recorded_all_the_same(app):
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

        @property
        def code(self) -> str:
            raise ValueError("no code either")

    @app.step
    def fails() -> None:
        raise Mute

    @app.workflow
    def in_step() -> str:
        try:
            fails()
        except StepFailed as failed:
            return f"{failed.type.rpartition('.')[2]} {failed.error_code}"
        return ""

    @app.workflow
    def in_body() -> None:
        raise Mute

    with app.worker():
        assert in_step.submit().result(SECONDS) == "Mute Mute"
        with pytest.raises(JobFailed, match="Mute, whose text cannot be had"):
            in_body.submit().result(SECONDS)
