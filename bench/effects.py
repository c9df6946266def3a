"""What an effect costs beside a step: `python -m bench.effects`, one job alone, on a file.

Both do nothing. An effect is durable before its call and after it: one more flush than a step. The last step
of a job shares its flush with the end of the job, so a step of ten costs 0.9.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from tallystick import Key, Tally

CALLS = 10
JOBS = 50


class Cost(NamedTuple):
    """What one call costs, in a job of ten."""

    flushes: float
    milliseconds: float


def costs(url: str, jobs: int = JOBS) -> dict[str, Cost]:
    """Return what a call of each kind costs in jobs that run one after the other."""
    app = Tally(url)

    @app.step
    def step(number: int) -> int:
        return number

    @app.effect(key="{name}:{number}")
    def effect(key: Key, name: str, number: int) -> int:
        assert key == f"{name}:{number}"
        return number

    @app.workflow
    def steps() -> int:
        return sum(step(number) for number in range(CALLS))

    @app.workflow
    def effects(name: str) -> int:
        return sum(effect(name, number) for number in range(CALLS))

    @app.workflow
    def nothing() -> int:
        return 0

    try:
        with app.worker(concurrency=1):
            empty = _measured(app, nothing.submit, jobs)
            by_kind = {
                "step": _measured(app, steps.submit, jobs),
                "effect": _measured(app, lambda number: effects.submit(str(number)), jobs, numbered=True),
            }
    finally:
        app.close()
    return {
        kind: Cost((cost.flushes - empty.flushes) / CALLS, (cost.milliseconds - empty.milliseconds) / CALLS)
        for kind, cost in by_kind.items()
    }


def _measured(app: Tally, submit: Callable[..., Any], jobs: int, *, numbered: bool = False) -> Cost:
    """Return the medians of some jobs: a worker writes something of its own now and then."""
    committer = app.runtime().committer
    flushes, milliseconds = [], []
    for number in range(jobs):
        before, began = committer.flushes, perf_counter()
        submit(*((number,) if numbered else ())).result(60)
        flushes.append(committer.flushes - before)
        milliseconds.append((perf_counter() - began) * 1000)
    return Cost(median(flushes), median(milliseconds))


def main() -> int:
    """Print a row for each kind."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, cost in costs(f"sqlite:///{Path(folder) / 'bench.db'}").items():
            sys.stdout.write(f"{kind:8} {cost.flushes:5.2f} flushes {cost.milliseconds:7.3f} ms\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
