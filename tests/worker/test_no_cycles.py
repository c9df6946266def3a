"""What a job leaves behind is gone at once: nothing of it waits for the garbage collector."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from pathlib import Path

import pytest

from tallystick import Retry, Tally
from tallystick.errors import JobFailed
from tests.patience import wait_until

JOBS = 50


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_jobs_leave_no_cycles_of_objects(tmp_path: Path, colour: str):
    """The collector walks everything that is alive; one cycle a step made it a tenth of the whole cost."""
    app = Tally(f"sqlite:///{tmp_path}/books.db")

    @app.step
    def twice(number: int) -> int:
        return 2 * number

    @app.step
    async def thrice(number: int) -> int:
        return 3 * number

    @app.workflow
    def doubling(number: int) -> int:
        return twice(twice(number))

    @app.workflow
    async def tripling(number: int) -> int:
        return await thrice(await thrice(number))

    workflow = doubling if colour == "sync" else tripling
    with app.worker():
        workflow.submit(1).result(20)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for job in workflow.submit_many([(number,) for number in range(JOBS)]):
                job.result(20)
            gc.collect()
            left = Counter(type(thing).__qualname__ for thing in gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    app.close()
    # An exception with its traceback, once a run, is nobody's concern; one thing a job would be.
    assert max(left.values(), default=0) < JOBS, left


class Parcel:
    """Something of the user's that remembers what went wrong with it, and so points to itself."""

    error: Exception | None = None


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_what_a_failed_step_was_given_can_be_freed(tmp_path: Path, colour: str):
    """What carries arguments to a step must not hide them from the collector, whatever they point to."""
    app = Tally(f"sqlite:///{tmp_path}/books.db")
    seen: list[weakref.ref[Parcel]] = []

    def lose(parcel: Parcel) -> None:
        try:
            raise LookupError("lost on its way")
        except LookupError as error:
            parcel.error = error
            raise

    @app.step(retry=Retry(1))
    def send(parcel: Parcel) -> None:
        lose(parcel)

    @app.step(retry=Retry(1))
    async def send_async(parcel: Parcel) -> None:
        lose(parcel)

    def packed() -> Parcel:
        parcel = Parcel()
        seen.append(weakref.ref(parcel))
        return parcel

    @app.workflow(retry=Retry(1))
    def sending() -> None:
        send(packed())

    @app.workflow(retry=Retry(1))
    async def sending_async() -> None:
        await send_async(packed())

    with app.worker():
        with pytest.raises(JobFailed):
            (sending if colour == "sync" else sending_async).submit().result(20)
        wait_until(lambda: gc.collect() >= 0 and seen[0]() is None)
    app.close()
