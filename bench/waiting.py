"""Waiting on SQLite against DBOS on SQLite: signals, sleepers, fan-out and fan-in; interleaved."""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from bench.kernel import (
    BY_HAND,
    OURS,
    SHIPPED,
    Row,
    compared,
    in_turns,
    percentile,
    sides_on_sqlite,
    spread,
)
from bench.on_postgres.server import database, running
from bench.side import Measured, Side, measure
from tallystick.testing.postgres_server import NoServer

# The children of the peer all run at once; so many of ours do.
SLOTS = 256
GOALS_OF_A_FAN = {SHIPPED: 50, BY_HAND: 35}
GOAL_OF_SLEEPERS_PER_SECOND = 2_000
# A server of its own on the same two cores is given fewer.
POSTGRES_SHARE = 10
# A parent has its job, two attempts, one group, one word that it is closed, and five events; fewer if its
# children ended so soon that it was never put away.
ROWS_OF_A_PARENT = 10


@dataclass(frozen=True)
class Fan:
    """A number of children, and how often each side is asked for them."""

    children: int
    our_rounds: int
    peer_rounds: int


@dataclass(frozen=True)
class Plan:
    """How much of everything a run does."""

    fans: tuple[Fan, ...]
    round_trips: int
    sleepers: int
    sleeper_rounds: int


FULL = Plan(
    fans=(Fan(100, 7, 7), Fan(1_000, 7, 3), Fan(10_000, 3, 1), Fan(100_000, 1, 0)),
    round_trips=100,
    sleepers=10_000,
    sleeper_rounds=3,
)
QUICK = Plan(fans=(Fan(100, 3, 1), Fan(500, 3, 1)), round_trips=5, sleepers=1_000, sleeper_rounds=1)


def main(*, quick: bool, rounds: int | None = None) -> list[Row]:
    """Measure everything and return its rows."""
    plan = QUICK if quick else FULL
    if rounds:
        fans_of = tuple(
            replace(fan, our_rounds=rounds, peer_rounds=min(fan.peer_rounds, rounds)) for fan in plan.fans
        )
        plan = replace(plan, fans=fans_of, sleeper_rounds=rounds)
    sides = sides_on_sqlite("bench.waiting_ours", "bench.waiting_dbos", in_flight=SLOTS)
    with tempfile.TemporaryDirectory(prefix="tallystick-bench-") as name:
        folder = Path(name)
        return [
            *signals(sides, plan, folder),
            sleepers(sides[OURS], plan, folder),
            *sleepers_on_postgres(sides[OURS], plan, folder),
            *fans(sides, plan, folder),
        ]


def signals(sides: dict[str, Side], plan: Plan, folder: Path) -> list[Row]:
    """Send a signal to a job that waits, and wait for its result; one after the other."""
    taken, syncs = in_turns(sides, plan.round_trips, folder, case="signal")
    rows = []
    for label, share in (("p50", 50), ("p95", 95)):
        ours = percentile(taken[OURS], share)
        print(f"  signal round trip, {label}: {ours:.2f} ms", flush=True)
        for name in [name for name in sides if name != OURS] or [None]:
            peer = None if name is None else percentile(taken[name], share)
            row = compared(f"signal round trip, {label}", ours, name, peer, "ms")
            row |= {"better": "lower", "rounds": len(taken[OURS])}
            row["syncs_per_second"] = [min(syncs), statistics.median(syncs), max(syncs)]
            if peer is not None:
                row |= {"goal": "< 1x", "met": ours < peer}
            rows.append(row)
    return rows


def sleepers(side: Side, plan: Plan, folder: Path, *, store: str = "SQLite", url: str = "") -> Row:
    """Let many jobs wake at one instant and tell how fast they came to their ends from there."""
    speeds, syncs = [], []
    for _ in range(plan.sleeper_rounds):
        measured = measure(side, folder, case="sleepers", jobs=plan.sleepers, url=url)
        speeds.append(plan.sleepers / measured.answer["seconds"])
        syncs += measured.sync_rates
        what = f"{plan.sleepers:,} sleepers on {store}: {measured.answer['seconds']:.2f} s"
        late = " (not all were asleep by then: too busy a machine)" if measured.answer["late"] else ""
        print(f"  {what} {measured.note}{late}", flush=True)
    name = f"{plan.sleepers:,} sleepers wake, {store}"
    row = compared(name, statistics.median(speeds), None, None, "jobs/s")
    row["seconds"] = plan.sleepers / row["ours"]
    if not url:
        goal = GOAL_OF_SLEEPERS_PER_SECOND
        row |= {"goal": f">= {goal:,}", "met": row["ours"] >= goal}
    return row | spread(speeds, [], syncs)


def sleepers_on_postgres(side: Side, plan: Plan, folder: Path) -> list[Row]:
    """Do the same on a server of our own that syncs, if this machine has the programs of one."""
    once = replace(plan, sleepers=plan.sleepers // POSTGRES_SHARE, sleeper_rounds=1)
    try:
        with running() as server, database(server) as address:
            return [sleepers(side, once, folder, store="PostgreSQL", url=address)]
    except NoServer as error:
        print(f"  no sleepers on PostgreSQL: {error}", flush=True)
        return []


def fans(sides: dict[str, Side], plan: Plan, folder: Path) -> list[Row]:
    """Ask all sides for the same fan-outs in turns; where it is not asked, a peer has its last speed."""
    rows: list[Row] = []
    last: dict[str, list[float]] = {}
    for fan in plan.fans:
        speeds: dict[str, list[float]] = defaultdict(list)
        syncs: list[float] = []
        for number in range(fan.our_rounds):
            for name, side in sides.items():
                if name == OURS or number < fan.peer_rounds:
                    measured = measure(side, folder, case="fan", children=fan.children)
                    speeds[name].append(fan.children / measured.answer["seconds"])
                    syncs += measured.sync_rates
                    report(fan, number, name, speeds[name][-1], measured)
        last |= {name: found for name, found in speeds.items() if name != OURS}
        rows += [row_of(fan, speeds[OURS], name, last.get(name), syncs) for name in peers(sides)]
    return rows


def peers(sides: dict[str, Side]) -> list[str | None]:
    return [name for name in sides if name != OURS] or [None]


def row_of(
    fan: Fan, ours: list[float], name: str | None, peer: list[float] | None, syncs: list[float]
) -> Row:
    its_speed = None if peer is None else statistics.median(peer)
    row = compared(f"fan of {fan.children:,}", statistics.median(ours), name, its_speed, "children/s")
    if name is not None and its_speed is not None:
        goal = GOALS_OF_A_FAN[name]
        row |= {"goal": f">= {goal:g}x", "met": row["ratio"] >= goal, "peer_asked": fan.peer_rounds > 0}
    return row | spread(ours, peer or [], syncs)


def report(fan: Fan, number: int, name: str, speed: float, measured: Measured) -> None:
    """Say how it went, and insist that a parent of ours has no more rows with many children than with few."""
    rows = measured.answer.get("rows_of_parent", ROWS_OF_A_PARENT)
    if rows > ROWS_OF_A_PARENT:
        raise AssertionError(f"a parent of {fan.children} children has {rows} rows")
    what = f"fan of {fan.children:>7,} {name:22} {speed:>8,.0f} children/s"
    print(f"  round {number + 1}  {what} {measured.note}", flush=True)
