"""What a job leaves behind is gone at once: nothing of it waits for the garbage collector."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest

from tallystick import Tally

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
