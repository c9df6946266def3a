"""What operators ask for: queues with limits against DBOS with the same ones, schedules, what series cost."""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from bench.kernel import BY_HAND, OURS, SHIPPED, compared, sides_on_sqlite, spread
from bench.side import Side, measure

Row = dict[str, Any]

SERIES_GOAL = 0.02


class Queue(NamedTuple):
    """A queue with limits, and over how many keys its jobs are spread."""

    name: str
    limits: dict[str, Any]
    keys: int


# The rate is one that neither side comes near to: what is measured is what it costs to keep to it.
QUEUES = (
    Queue("queue, one at a time for each of 50 keys", {"per_key": 1}, 50),
    Queue("queue with a rate", {"rate": "100000/1s", "burst": 1_000}, 1),
)


def main(*, quick: bool, rounds: int | None = None) -> list[Row]:
    """Measure everything and return its rows."""
    rounds = rounds or (1 if quick else 5)
    jobs, theirs, schedules, watched = (1_000, 100, 1_000, 5_000) if quick else (5_000, 200, 10_000, 40_000)
    sides = sides_on_sqlite("bench.operating_ours", "bench.operating_dbos")
    with tempfile.TemporaryDirectory(prefix="tallystick-bench-") as name:
        folder = Path(name)
        return [
            *(row for queue in QUEUES for row in limited(sides, queue, folder, rounds, (jobs, theirs))),
            due_at_once(sides[OURS], folder, rounds, schedules),
            watching(sides[OURS], folder, watched),
        ]


def limited(
    sides: dict[str, Side], queue: Queue, folder: Path, rounds: int, jobs: tuple[int, int]
) -> list[Row]:
    """Let each side work off such a queue; beside it ours without its limits."""
    speeds: dict[str, list[float]] = defaultdict(list)
    syncs: list[float] = []
    free = Side("ours without limits", sides[OURS].command, {"limits": {}})
    limits = {
        name: Side(each.name, each.command, {**each.order, "limits": queue.limits})
        for name, each in sides.items()
    }
    for number in range(rounds):
        for side in [*limits.values(), free][:: -1 if number % 2 else 1]:
            peer = side.name in {SHIPPED, BY_HAND}
            measured = measure(side, folder, case="limited", keys=queue.keys, jobs=jobs[peer])
            said = measured.answer
            speeds[side.name].append(said["jobs"] / said["seconds"])
            syncs += measured.sync_rates
            rate = f"{speeds[side.name][-1]:>8,.0f} jobs/s, {said['cpu_us']:,.0f} us of CPU each"
            print(f"  round {number + 1}  {queue.name}  {side.name:22} {rate}  {measured.note}", flush=True)
    ours = speeds[OURS]
    rows = []
    for peer in (SHIPPED, BY_HAND, free.name):
        if peer in speeds:
            theirs = speeds[peer]
            row = compared(queue.name, statistics.median(ours), peer, statistics.median(theirs), "jobs/s")
            goal = {} if peer == free.name else {"goal": "> 1x", "met": row["ratio"] > 1}
            rows.append(row | goal | spread(ours, theirs, syncs))
    return rows


def due_at_once(ours: Side, folder: Path, rounds: int, count: int) -> Row:
    """Let so many schedules be due at one instant."""
    speeds, syncs = list[float](), list[float]()
    for number in range(rounds):
        measured = measure(ours, folder, case="schedules", jobs=count)
        said = measured.answer
        speeds.append(count / said["seconds"])
        syncs += measured.sync_rates
        rest = f"the last {said['seconds']:.1f} s after its instant, {said['cpu_us']:,.0f} us of CPU each"
        print(f"  round {number + 1}  schedules  {speeds[-1]:,.0f} ticks/s, {rest}", flush=True)
    name = f"{count:,} schedules due in one second"
    return compared(name, statistics.median(speeds), None, None, "ticks/s") | spread(speeds, [], syncs)


def watching(ours: Side, folder: Path, jobs: int) -> Row:
    """Compare the processor time of the series of a process with that of its jobs."""
    said = measure(ours, folder, case="watched", jobs=jobs).answer
    share, (least, most) = said["share"], said["from_to"]
    print(
        f"  series  {share:.1%} of the CPU of jobs, {least:.1%} to {most:.1%} in {said['turns']} turns",
        flush=True,
    )
    row = compared("series, of the CPU of 1-step jobs", share * 100, None, None, "%")
    return row | {"goal": f"<= {SERIES_GOAL:.0%}", "met": share <= SERIES_GOAL, "better": "lower"}
