"""How much of our Python one unit of work runs, in bytecodes: the same on a busy machine as on an idle one.

    python bench/bytecodes.py [FUNCTIONS]

prints one JSON object: what a submission, a step, a job of one step, a child and a wait with its signal cost;
before it, for each of them, the FUNCTIONS that cost most. Only code of the package is counted; SQLite, hashes
and the user's functions are not. It needs nothing but the public names that every revision has, so that
`make bench-against REV=... WITH="--only python"` runs this file in both trees. How many writes share a
flush is chance, so a figure moves by some parts of a hundred.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import tallystick
from tallystick import Tally, aio, wait

UNITS = ("a submission", "a job of one step", "a step more", "a child", "a wait and its signal")
OURS = str(Path(tallystick.__file__).parent)
JOBS = 32
STEPS = 6
CHILDREN = 50
IN_FLIGHT = 64
PATIENCE_S = 120

app = Tally()


@app.step
async def step(number: int) -> int:
    return number


@app.workflow
async def steps(count: int) -> int:
    for number in range(count):
        await step(number)
    return count


@app.workflow
async def leaf(number: int) -> int:
    return number


@app.workflow
async def fan(children: int) -> int:
    return sum(await aio.gather(*(leaf.child(number) for number in range(children))))


@app.workflow
def waiter(number: int) -> int:
    return number + wait("go", int)


class Bytecodes:
    """Counts the bytecodes of our code in every thread that begins after it, by function."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._counts: Counter[CodeType] = Counter()
        self._on = False
        self._is_ours: dict[CodeType, bool] = {}
        threading.settrace(self._entered)
        sys.settrace(self._entered)

    def of(self, work: Callable[[], object]) -> Counter[CodeType]:
        """Return how many bytecodes of each function ran while this work was done, a second time."""
        work()
        self._counts.clear()
        self._on = True
        try:
            work()
        finally:
            self._on = False
        return self._counts.copy()

    def _entered(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., object] | None:
        code = frame.f_code
        if code not in self._is_ours:
            self._is_ours[code] = code.co_filename.startswith(OURS)
        if not self._is_ours[code]:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._ran

    def _ran(self, frame: FrameType, event: str, _argument: object) -> Callable[..., object]:
        if event == "opcode" and self._on:
            self._counts[frame.f_code] += 1
        return self._ran


def run(count: int) -> None:
    for job in steps.submit_many([(count,)] * JOBS):
        assert job.result(timeout=PATIENCE_S) == count


def submit() -> None:
    for _ in range(JOBS):
        steps.submit(0)


def spread() -> None:
    assert fan.submit(CHILDREN).result(timeout=PATIENCE_S) == CHILDREN * (CHILDREN - 1) // 2


def signal() -> None:
    jobs = waiter.submit_many([(number,) for number in range(JOBS)])
    while app.runtime().worker.running:  # all of them wait
        time.sleep(0.01)
    for job in jobs:
        job.send("go", 1)
    assert [job.result(timeout=PATIENCE_S) for job in jobs] == [number + 1 for number in range(JOBS)]


def counted(functions: int = 0) -> dict[str, float]:
    """Return what each unit of work costs, on a file of its own; print the functions that cost most."""
    bytecodes = Bytecodes()

    def cost(name: str, work: Callable[[], object], units: int) -> float:
        by_function = bytecodes.of(work)
        for code, ran in by_function.most_common(functions):
            where = code.co_filename.removeprefix(OURS + "/")
            print(f"{name:22} {ran / units:9.1f}  {code.co_qualname}  {where}")
        return by_function.total() / units

    with tempfile.TemporaryDirectory(prefix="tallystick-bytecodes-") as folder:
        app.bind(f"sqlite:///{Path(folder) / 'ours.db'}")
        submission = cost("a submission", submit, JOBS)
        with app.worker(concurrency=IN_FLIGHT):
            one = cost("a job of one step", lambda: run(1), JOBS)
            more = cost("a job of more steps", lambda: run(STEPS), JOBS)
            child = cost("a child", spread, CHILDREN)
            waited = cost("a wait and its signal", signal, JOBS)
        app.close()
    return dict(zip(UNITS, (submission, one, (more - one) / (STEPS - 1), child, waited), strict=True))


if __name__ == "__main__":
    print(json.dumps(counted(*map(int, sys.argv[1:]))))
