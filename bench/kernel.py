"""The kernel on SQLite against DBOS on SQLite and against the limit, interleaved."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.environment import DBOS, python_of
from bench.side import Measured, Side, measure, taking_turns
from bench.sync_rate import sync_rate

IN_FLIGHT = 64
OURS, SHIPPED, BY_HAND, LIMIT = "ours", "DBOS as shipped", "DBOS with WAL by hand", "limit"

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One kind of work, how much of it each side gets, and what is promised for it."""

    name: str
    colour: str
    steps: int
    unit: str
    our_jobs: int
    peer_jobs: int
    goals: dict[str, float]
    goal_of_limit: float | None = None


CASES = (
    Case("10-step async", "async", 10, "steps/s", 2048, 96, {SHIPPED: 100, BY_HAND: 70}, 0.40),
    Case("10-step sync", "sync", 10, "steps/s", 1024, 96, {SHIPPED: 50, BY_HAND: 35}, 0.15),
    Case("1-step async", "async", 1, "jobs/s", 8192, 192, {SHIPPED: 100, BY_HAND: 60}),
    Case("1-step sync", "sync", 1, "jobs/s", 4096, 192, {SHIPPED: 40, BY_HAND: 25}),
)


@dataclass(frozen=True)
class Plan:
    """How much of everything a run does."""

    rounds: int
    share: float
    alone_jobs: int
    queued: int
    memory_jobs: int


FULL = Plan(rounds=7, share=1, alone_jobs=300, queued=100_000, memory_jobs=1_000_000)
QUICK = Plan(rounds=1, share=0.25, alone_jobs=40, queued=20_000, memory_jobs=30_000)


def main(*, quick: bool, rounds: int | None = None) -> list[Row]:
    """Measure everything and return its rows."""
    plan = QUICK if quick else FULL
    plan = replace(plan, rounds=rounds or plan.rounds)
    sides = the_sides()
    with tempfile.TemporaryDirectory(prefix="tallystick-bench-") as name:
        folder = Path(name)
        return [
            *throughput(sides, plan, folder),
            *alone(sides, plan, folder),
            claim(sides[OURS], plan, folder),
            memory(sides[OURS], plan, folder),
        ]


def sides_on_sqlite(ours: str, dbos: str, **order: Any) -> dict[str, Side]:
    """Return us, and DBOS twice where it can be had; each side is a module that measures itself."""
    sides = {OURS: Side(OURS, (sys.executable, "-m", ours), order)}
    python = python_of(DBOS)
    if python is not None:
        command = (str(python), "-m", dbos)
        sides[SHIPPED] = Side(SHIPPED, command, {"wal": False})
        sides[BY_HAND] = Side(BY_HAND, command, {"wal": True})
    return sides


def the_sides() -> dict[str, Side]:
    limit = Side(LIMIT, (sys.executable, "-m", "bench.limit"))
    return {**sides_on_sqlite("bench.ours", "bench.peer_dbos"), LIMIT: limit}


def throughput(sides: dict[str, Side], plan: Plan, folder: Path) -> list[Row]:
    """Go through all cases and sides round by round, so that a slow minute of the disk hits everybody."""
    speeds: dict[tuple[str, str], list[float]] = defaultdict(list)
    syncs: dict[str, list[float]] = defaultdict(list)
    for number in range(plan.rounds):
        for case in CASES:
            for name in order_of(sides, number):
                measured = one(sides[name], case, plan, folder)
                speeds[case.name, name].append(speed(case, measured))
                syncs[case.name] += measured.sync_rates
                report(number, case, name, speeds[case.name, name][-1], measured)
    return [row for case in CASES for row in rows_of(case, sides, speeds, syncs[case.name])]


def order_of(sides: dict[str, Side], number: int) -> list[str]:
    """Return who is measured after whom: us and the limit, which take a second each, between all others.

    Every second round goes backwards, so that nobody always comes after the same neighbour.
    """
    order = [OURS, LIMIT]
    for peer in (SHIPPED, BY_HAND):
        if peer in sides:
            order += [peer, OURS, LIMIT]
    return order[:: -1 if number % 2 else 1]


def one(side: Side, case: Case, plan: Plan, folder: Path) -> Measured:
    peer = side.name in {SHIPPED, BY_HAND}
    jobs = max(IN_FLIGHT, int((case.peer_jobs if peer else case.our_jobs) * plan.share))
    measured = measure(side, folder, case=case.colour, steps=case.steps, jobs=jobs, in_flight=IN_FLIGHT)
    measured.answer.setdefault("jobs", jobs)
    return measured


def speed(case: Case, measured: Measured) -> float:
    done = measured.answer["jobs"] * (case.steps if case.unit == "steps/s" else 1)
    return done / measured.answer["seconds"]


def report(number: int, case: Case, name: str, result: float, measured: Measured) -> None:
    what = f"round {number + 1}  {case.name:14} {name:22} {result:>10,.0f} {case.unit:8}"
    print(f"  {what} {measured.note}", flush=True)


def rows_of(
    case: Case, sides: dict[str, Side], speeds: dict[tuple[str, str], list[float]], syncs: list[float]
) -> list[Row]:
    ours = speeds[case.name, OURS]
    limit = statistics.median(speeds[case.name, LIMIT])
    rows = []
    for peer_name in (SHIPPED, BY_HAND):
        if peer_name not in sides:
            continue
        peer = speeds[case.name, peer_name]
        row = compared(case.name, statistics.median(ours), peer_name, statistics.median(peer), case.unit)
        goal = case.goals[peer_name]
        row |= {"goal": f">= {goal:g}x", "met": row["ratio"] >= goal}
        rows.append(row | spread(ours, peer, syncs))
    if not rows:
        rows = [compared(case.name, statistics.median(ours), None, None, case.unit) | spread(ours, [], syncs)]
    for row in rows:
        row["limit"] = limit
        row["of_limit"] = row["ours"] / limit
        if case.goal_of_limit is not None:
            row["goal_of_limit"] = f">= {case.goal_of_limit:.0%}"
            row["met_of_limit"] = row["of_limit"] >= case.goal_of_limit
    return rows


def compared(name: str, ours: float, peer_name: str | None, peer: float | None, unit: str) -> Row:
    """Return a row without limit and goal."""
    return {
        "name": name,
        "ours": ours,
        "peer_name": peer_name,
        "peer": peer,
        "limit": None,
        "unit": unit,
        "ratio": None if peer is None else ours / peer,
        "of_limit": None,
    }


def spread(ours: list[float], peer: list[float], syncs: list[float]) -> Row:
    return {
        "ours_from_to": [min(ours), max(ours)],
        "peer_from_to": [min(peer), max(peer)] if peer else None,
        "rounds": len(ours),
        "syncs_per_second": [min(syncs), statistics.median(syncs), max(syncs)],
    }


def in_turns(
    sides: dict[str, Side], how_many: int, folder: Path, **order: Any
) -> tuple[dict[str, list[float]], list[float]]:
    """Return the milliseconds of jobs done one after the other, five a turn, and the rates of the disk.

    All sides are up, and one of them works at a time.
    """
    taken: dict[str, list[float]] = defaultdict(list)
    syncs: list[float] = []
    with ExitStack() as stack:
        running = {
            name: stack.enter_context(taking_turns(side, folder, **order)) for name, side in sides.items()
        }
        while len(taken[OURS]) < how_many:
            syncs.append(sync_rate(folder, 0.05))
            for name, side in running.items():
                taken[name] += side.take(5)
    return taken, syncs


def alone(sides: dict[str, Side], plan: Plan, folder: Path) -> list[Row]:
    """Submit one job at a time and wait for it."""
    names = [name for name in (OURS, SHIPPED, BY_HAND) if name in sides]
    order = {"case": "alone", "steps": 10, "jobs": 0, "in_flight": IN_FLIGHT}
    taken, syncs = in_turns({name: sides[name] for name in names}, plan.alone_jobs, folder, **order)
    rows = []
    for label, share in (("p50", 50), ("p95", 95)):
        ours = percentile(taken[OURS], share)
        for name in names[1:]:
            row = compared(f"one job alone, {label}", ours, name, percentile(taken[name], share), "ms")
            row |= {"better": "lower", "rounds": len(taken[OURS])}
            row["syncs_per_second"] = [min(syncs), statistics.median(syncs), max(syncs)]
            if name == BY_HAND:
                row |= {"goal": "< 1x", "met": row["ratio"] < 1}
            rows.append(row)
    return rows


def percentile(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def claim(side: Side, plan: Plan, folder: Path) -> Row:
    """Compare the speed of the first tenth of a queue with that of its last tenth."""
    measured = measure(side, folder, case="claim", jobs=plan.queued)
    claims, part = measured.answer["claims"], plan.queued // 10
    first, last = claim_speed(claims, part), claim_speed(claims[::-1], part)
    row = compared(f"claim, last {part:,} of {plan.queued:,}", last, f"first {part:,}", first, "jobs/s")
    return row | {
        "goal": ">= 0.8x",
        "met": row["ratio"] >= 0.8,
        "syncs_per_second": list(measured.sync_rates),
    }


def claim_speed(claims: list[list[float]], jobs: int) -> float:
    """Return the speed of the first claims, by their median, so that one slow sync does not decide."""
    counted, times = 0, []
    for size, seconds in claims:
        counted += size
        times.append(seconds / size)
        if counted >= jobs:
            break
    return 1 / statistics.median(times)


def memory(side: Side, plan: Plan, folder: Path) -> Row:
    """Tell how much the process grew after its first fifth, when everything has been used once.

    A quick run ends before SQLite has filled its page cache, which has a fixed size, so it counts the blocks
    that Python holds instead: one forgotten object a job is one block a job.
    """
    measured = measure(side, folder, case="memory", jobs=plan.memory_jobs, steps=1, in_flight=IN_FLIGHT)
    samples = measured.answer["samples"]
    jobs, resident, blocks = zip(*samples[len(samples) // 5 :], strict=True)
    mib = slope(jobs, resident) * (jobs[-1] - jobs[0]) / 1024
    blocks_a_job = slope(jobs, blocks)
    name = f"memory over {plan.memory_jobs:,} jobs"
    if plan.memory_jobs == QUICK.memory_jobs:
        row = compared(name, blocks_a_job, None, None, "blocks a job")
        row |= {"goal": "<= 0.1", "met": blocks_a_job <= 0.1}
    else:
        row = compared(name, mib, None, None, "MiB grown")
        row |= {"goal": "<= 8 MiB", "met": mib <= 8}
    return row | {
        "better": "lower",
        "mib_grown": mib,
        "blocks_a_job": blocks_a_job,
        "resident_mib": [kib / 1024 for _jobs, kib, _blocks in samples],
        "jobs_per_second": plan.memory_jobs / measured.answer["seconds"],
        "syncs_per_second": list(measured.sync_rates),
    }


def slope(jobs: tuple[int, ...], held: tuple[int, ...]) -> float:
    return statistics.linear_regression(jobs, held).slope
