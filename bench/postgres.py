"""Tallystick on PostgreSQL against DBOS, PgQueuer, Procrastinate, Absurd and Oban, interleaved on one server.

    python -m bench --only postgres [--quick]

Every measurement has a database of its own on the same server, which syncs as PostgreSQL is shipped.
Rounds go through all members of a case, there and back; a figure is the median of the rounds.
"""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.kernel import Row, compared, spread
from bench.on_postgres.draining import drain
from bench.on_postgres.idle import WORKERS, idle_workers
from bench.on_postgres.pgbench import transactions_per_second
from bench.on_postgres.server import database, running
from bench.on_postgres.sides import LIMIT, OURS, Member, the_members
from bench.side import Measured, SideFailed, measure
from tallystick.testing.postgres_server import NoServer, Server

IN_FLIGHT, CALLERS, LIST = 64, 16, 1_000
PGBENCH = "pgbench"


@dataclass(frozen=True)
class Case:
    """One kind of work: how much of it each member does in a full round, and what is promised."""

    name: str
    order: dict[str, Any]
    unit: str
    jobs: dict[str, int]
    goals: dict[str, float] = field(default_factory=dict)
    goal_of_limit: float | None = None
    peers_do: str | None = None

    @property
    def drains(self) -> bool:
        return self.order["case"] == "queue"


STEPS = {OURS: 1_920, LIMIT: 3_840, "DBOS": 128, "Absurd": 320}
QUEUED = {OURS: 20_000, LIMIT: 20_000, "PgQueuer": 40_000, "Oban": 5_000, "Procrastinate": 1_000}
QUEUED |= {"Absurd": 1_600, "DBOS": 320}
SINGLE = {
    OURS: 16_000,
    "PgQueuer": 4_000,
    "Absurd": 4_000,
    "Oban": 4_000,
    "Procrastinate": 2_000,
    "DBOS": 640,
}
LISTED = {OURS: 30_000, LIMIT: 30_000, "PgQueuer": 50_000, "Oban": 5_000, "Procrastinate": 20_000}
LISTED |= {"Absurd": 4_000, "DBOS": 640}

CASES = (
    Case(
        "10-step async",
        {"case": "async", "steps": 10, "in_flight": IN_FLIGHT},
        "steps/s",
        STEPS,
        {"DBOS": 50},
        0.40,
    ),
    Case(
        "10-step sync",
        {"case": "sync", "steps": 10, "in_flight": IN_FLIGHT},
        "steps/s",
        {OURS: 960, LIMIT: 3_840, "DBOS": 128},
        {"DBOS": 50},
    ),
    Case(
        "queue of 1-step jobs",
        {"case": "queue", "steps": 1, "processes": 1},
        "jobs/s",
        QUEUED,
        {"PgQueuer": 2},
        0.40,
    ),
    Case(
        "the same, 2 processes",
        {"case": "queue", "steps": 1, "processes": 2},
        "jobs/s",
        {OURS: 20_000, "PgQueuer": 40_000},
    ),
    Case(
        "single enqueue, 16 tasks",
        {"case": "one-async", "callers": CALLERS},
        "jobs/s",
        SINGLE,
        dict.fromkeys(SINGLE, 5),
    ),
    Case(
        "single enqueue, 16 threads",
        {"case": "one-threads", "callers": CALLERS},
        "jobs/s",
        {OURS: 16_000},
        dict.fromkeys(SINGLE, 5),
        peers_do="single enqueue, 16 tasks",
    ),
    Case(
        "bulk enqueue, lists of 1,000",
        {"case": "bulk", "size": LIST},
        "jobs/s",
        LISTED,
        dict.fromkeys(LISTED, 3),
        0.40,
    ),
)


@dataclass(frozen=True)
class Plan:
    """How much of everything a run does; unless everybody takes part, only those whom a goal names do."""

    rounds: int
    share: float
    everybody: bool
    idle_seconds: float
    pgbench_seconds: int


FULL = Plan(rounds=7, share=1, everybody=True, idle_seconds=30, pgbench_seconds=5)
QUICK = Plan(rounds=1, share=0.1, everybody=False, idle_seconds=3, pgbench_seconds=1)


class Figures:
    """Everything that was measured so far."""

    def __init__(self) -> None:
        self.speeds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.syncs: dict[str, list[float]] = defaultdict(list)

    def median(self, case: str, name: str) -> float | None:
        speeds = self.speeds.get((case, name))
        return statistics.median(speeds) if speeds else None


def main(*, quick: bool, rounds: int | None = None) -> list[Row]:
    """Measure everything and return its rows."""
    plan = QUICK if quick else FULL
    plan = replace(plan, rounds=rounds or plan.rounds)
    members = the_members()
    try:
        with running() as server, tempfile.TemporaryDirectory(prefix="tallystick-bench-") as name:
            folder = Path(name)
            figures = Figures()
            for number in range(plan.rounds):
                one_round(number, members, plan, server, folder, figures)
            show_spread(figures)
            rows = [row for case in CASES for row in rows_of(case, members, figures)]
            return [*rows, *two_against_one(figures), *idle(server, members[OURS], plan)]
    except NoServer as error:
        print(f"  {error}; the rows of PostgreSQL are left out")
        return []


def one_round(
    number: int, members: dict[str, Member], plan: Plan, server: Server, folder: Path, figures: Figures
) -> None:
    for case in CASES:
        for name in order_of(case, members, plan, number):
            jobs = max(IN_FLIGHT, int(case.jobs[name] * plan.share))
            try:
                measured = one(members[name], case, jobs, server, folder)
            except SideFailed as error:
                print(f"  {name} failed and is left out of this round: {error}", flush=True)
                continue
            steps = case.order["steps"] if case.unit == "steps/s" else 1
            speed = measured.answer.get("jobs", jobs) * steps / measured.answer["seconds"]
            figures.speeds[case.name, name].append(speed)
            figures.syncs[case.name] += measured.sync_rates
            report(number, case, name, speed, measured)
        if case.order["case"] == "one-async":
            with database(server) as dsn:
                rate = transactions_per_second(
                    server, dsn, folder, connections=CALLERS, seconds=plan.pgbench_seconds
                )
            if rate is not None:
                figures.speeds[case.name, PGBENCH].append(rate)
                print(f"  round {number + 1}  {case.name:28} {PGBENCH:14} {rate:>10,.0f} tx/s", flush=True)


def order_of(case: Case, members: dict[str, Member], plan: Plan, number: int) -> list[str]:
    """Return who is measured after whom: we come first and last, and every second round goes backwards."""
    peers = [name for name in members if name in case.jobs and name != OURS]
    if not plan.everybody:
        wanted = {*case.goals, LIMIT} if case.goal_of_limit else {*case.goals}
        return [OURS, *(name for name in peers if name in wanted)]
    return [OURS, *peers[:: -1 if number % 2 else 1], OURS]


def one(member: Member, case: Case, jobs: int, server: Server, folder: Path) -> Measured:
    order = case.order
    if case.drains and member.side.name != LIMIT:
        return drain(server, member, folder, jobs=jobs, steps=order["steps"], processes=order["processes"])
    with database(server) as dsn:
        if case.drains:
            order = {**order, "in_flight": 256}
        return measure(member.side, folder, **order, jobs=jobs, dsn=dsn)


def report(number: int, case: Case, name: str, speed: float, measured: Measured) -> None:
    what = f"round {number + 1}  {case.name:28} {name:14} {speed:>10,.0f} {case.unit:8}"
    print(f"  {what} {measured.note}", flush=True)


def show_spread(figures: Figures) -> None:
    """Print the median of every member, and between what its rounds were."""
    for (case, name), speeds in figures.speeds.items():
        print(
            f"  {case:28} {name:14} median {statistics.median(speeds):>10,.0f}"
            f"  from {min(speeds):>10,.0f} to {max(speeds):>10,.0f}  of {len(speeds)}"
        )


def rows_of(case: Case, members: dict[str, Member], figures: Figures) -> list[Row]:
    ours = figures.median(case.name, OURS)
    if ours is None:
        return []
    theirs = case.peers_do or case.name
    rows = []
    for name in members:
        peer = figures.median(theirs, name)
        if peer is None or name in {OURS, LIMIT}:
            continue
        row = row_of(case.name, ours, name, peer, case.unit)
        if name in case.goals:
            row |= {"goal": f">= {case.goals[name]:g}x", "met": ours / peer >= case.goals[name]}
        rows.append(row | spread_of(figures, case, name))
    limit = figures.median(case.name, LIMIT) or figures.median(case.name, PGBENCH)
    for row in rows:
        row |= {"limit": limit, "of_limit": None if limit is None else ours / limit}
        if case.goal_of_limit is not None and limit is not None:
            met = ours / limit >= case.goal_of_limit
            row |= {"goal_of_limit": f">= {case.goal_of_limit:.0%}", "met_of_limit": met}
    return rows


def row_of(name: str, ours: float, peer_name: str | None, peer: float | None, unit: str) -> Row:
    """Return a row without limit and goal."""
    return compared(f"PostgreSQL: {name}", ours, peer_name, peer, unit)


def spread_of(figures: Figures, case: Case, peer: str) -> Row:
    theirs = figures.speeds[case.peers_do or case.name, peer]
    found = spread(figures.speeds[case.name, OURS], theirs, figures.syncs[case.name])
    return found | {"rounds": len(theirs)}


def two_against_one(figures: Figures) -> list[Row]:
    """Compare two worker processes with one, round by round, and take the median of the ratios."""
    one_process = figures.speeds["queue of 1-step jobs", OURS]
    two = figures.speeds["the same, 2 processes", OURS]
    ratios = [after / before for before, after in zip(one_process, two, strict=False)]
    if not ratios:
        return []
    ratio = statistics.median(ratios)
    medians = statistics.median(two), "1 process", statistics.median(one_process)
    row = row_of("queue, 2 processes", *medians, "jobs/s")
    row |= {"ratio": ratio, "goal": ">= 0.95x", "met": ratio >= 0.95, "rounds": len(ratios)}
    return [row | {"ratios_from_to": [min(ratios), max(ratios)]}]


def idle(server: Server, ours: Member, plan: Plan) -> list[Row]:
    seen = idle_workers(server, ours, seconds=plan.idle_seconds)
    statements, open_ones = seen["statements_per_second"], seen["open_transactions"]
    print(f"  {WORKERS} idle workers: {statements:.1f} statements/s, {seen['connections']:.0f} connections")
    rate = row_of(f"{WORKERS} idle workers", statements, None, None, "statements/s")
    held = row_of(f"{WORKERS} idle workers", open_ones, None, None, "open transactions")
    return [
        rate | {"better": "lower", "goal": "< 5", "met": statements < 5},
        held | {"better": "lower", "goal": "0", "met": open_ones == 0},
    ]
