"""This tree against another revision of it: `make bench-against REV=82afe54 [WITH="--quick --only kernel"]`.

Ours only. Each side runs the benchmark programs of its own tree in its own environment, one after the other,
and every second round the other one goes first: a slow minute of the disk hits both. A figure is the median
of its rounds; a ratio above 1 says that this tree is better. The rows are kept in `results/against.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import bytecodes, kernel, postgres, waiting
from bench.on_postgres.server import database, running
from bench.on_postgres.sides import OURS, one_of_ours
from bench.side import ROOT, Side, SideFailed, measure, taking_turns
from tallystick.testing.postgres_server import NoServer, Server

PARTS = ("kernel", "postgres", "waiting", "python")
RESULTS = Path(__file__).parent / "results" / "against.json"
NOW, THEN = "now", "then"
BYTECODES = "bytecodes"
HEAD = ("", NOW, "from", "to", THEN, "from", "to", "unit", "ratio")


@dataclass(frozen=True)
class Tree:
    """A checkout with its environment."""

    name: str
    root: Path
    python: str

    def side(self, module: str, **order: object) -> Side:
        return Side(self.name, (self.python, "-m", module), order, self.root)


@dataclass(frozen=True)
class Task:
    """One figure: how a tree comes to it, and whether less of it is better."""

    name: str
    unit: str
    run: Callable[[Tree], float]

    @property
    def lower_is_better(self) -> bool:
        return self.unit in ("ms", BYTECODES)


@dataclass(frozen=True)
class Amount:
    """How much of everything a run does."""

    rounds: int
    share: float
    round_trips: int
    sleepers: int
    fans: tuple[int, ...]


FULL = Amount(rounds=7, share=1, round_trips=100, sleepers=10_000, fans=(100, 1_000, 10_000))
QUICK = Amount(rounds=2, share=0.1, round_trips=20, sleepers=500, fans=(100, 500))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-against", description="This tree against another.")
    parser.add_argument("--quick", action="store_true", help="two small rounds, a few minutes")
    parser.add_argument("--only", choices=PARTS, action="append", help="run only this part (repeatable)")
    parser.add_argument("--rounds", type=int, help="how often each figure is taken on each side")
    options = parser.parse_args()
    amount = QUICK if options.quick else FULL
    trees = the_trees()
    figures: dict[tuple[str, str], list[float]] = defaultdict(list)
    parts = options.only or PARTS
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tallystick-bench-")))
        server = a_server(stack) if {*parts} - {"kernel", "python"} else None
        tasks = tasks_of(parts, amount, folder, server)
        for number in range(options.rounds or amount.rounds):
            for task in tasks:
                for tree in trees[:: -1 if number % 2 else 1]:
                    take(number, task, tree, figures)
    rows = [
        row_of(task, figures) for task in tasks if all((task.name, side) in figures for side in (NOW, THEN))
    ]
    show(rows)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\nfigures in {RESULTS.relative_to(ROOT)}")
    return 0 if len(rows) == len(tasks) else 1


def the_trees() -> tuple[Tree, Tree]:
    """Return this tree and the one that `scripts/at_revision` has checked out."""
    other = os.environ.get("AT_REVISION")
    if not other:
        sys.exit(__doc__)
    there = Path(other)
    return Tree(NOW, ROOT, sys.executable), Tree(THEN, there, str(there / ".venv" / "bin" / "python"))


def a_server(stack: ExitStack) -> Server | None:
    """Start the one server of this run, if this machine has the programs of one."""
    try:
        return stack.enter_context(running())
    except NoServer as error:
        print(f"{error}; what needs PostgreSQL is left out", flush=True)
        return None


def tasks_of(parts: list[str], amount: Amount, folder: Path, server: Server | None) -> list[Task]:
    tasks: list[Task] = []
    if "kernel" in parts:
        tasks += kernel_tasks(amount, folder)
    if "postgres" in parts and server is not None:
        tasks += postgres_tasks(amount, folder, server)
    if "waiting" in parts:
        tasks += waiting_tasks(amount, folder, server)
    if "python" in parts:
        tasks += python_tasks()
    return tasks


def kernel_tasks(amount: Amount, folder: Path) -> list[Task]:
    """Return the throughputs on SQLite, one job alone, and the claims of a long queue."""

    def throughput(case: kernel.Case) -> Callable[[Tree], float]:
        jobs = max(kernel.IN_FLIGHT, int(case.our_jobs * amount.share))
        order = {"case": case.colour, "steps": case.steps, "jobs": jobs, "in_flight": kernel.IN_FLIGHT}

        def run(tree: Tree) -> float:
            measured = measure(tree.side("bench.ours"), folder, **order)
            measured.answer["jobs"] = jobs
            return kernel.speed(case, measured)

        return run

    def alone(tree: Tree) -> float:
        order = {"case": "alone", "steps": 10, "jobs": 0, "in_flight": kernel.IN_FLIGHT}
        with taking_turns(tree.side("bench.ours"), folder, **order) as turns:
            return statistics.median(turns.take(amount.round_trips))

    def claim(tree: Tree) -> float:
        queued = int(kernel.FULL.queued * amount.share)
        claims = measure(tree.side("bench.ours"), folder, case="claim", jobs=queued).answer["claims"]
        return kernel.claim_speed(claims, queued)

    return [
        *(Task(case.name, case.unit, throughput(case)) for case in kernel.CASES),
        Task("one job alone", "ms", alone),
        Task("claim", "jobs/s", claim),
    ]


def postgres_tasks(amount: Amount, folder: Path, server: Server) -> list[Task]:
    """Return everything that the benchmark on PostgreSQL measures of us."""

    def of(case: postgres.Case) -> Callable[[Tree], float]:
        jobs = max(postgres.IN_FLIGHT, int(case.jobs[OURS] * amount.share))

        def run(tree: Tree) -> float:
            member = one_of_ours(tree.side("bench.on_postgres.ours"))
            answer = postgres.one(member, case, jobs, server, folder).answer
            steps = case.order["steps"] if case.unit == "steps/s" else 1
            return answer.get("jobs", jobs) * steps / answer["seconds"]

        return run

    return [Task(f"PostgreSQL: {case.name}", case.unit, of(case)) for case in postgres.CASES]


def waiting_tasks(amount: Amount, folder: Path, server: Server | None) -> list[Task]:
    """Return signals and sleepers on both stores, and fans on SQLite."""
    module, slots = "bench.waiting_ours", waiting.SLOTS

    def signal(tree: Tree, url: str = "") -> float:
        with taking_turns(tree.side(module, in_flight=slots, url=url), folder, case="signal") as turns:
            return statistics.median(turns.take(amount.round_trips))

    def sleepers(tree: Tree, url: str = "", share: int = 1) -> float:
        jobs = amount.sleepers // share
        side = tree.side(module, in_flight=slots, url=url)
        return jobs / measure(side, folder, case="sleepers", jobs=jobs).answer["seconds"]

    def fan(children: int) -> Callable[[Tree], float]:
        def run(tree: Tree) -> float:
            side = tree.side(module, in_flight=slots)
            return children / measure(side, folder, case="fan", children=children).answer["seconds"]

        return run

    def there(task: Callable[..., float], **more: int) -> Callable[[Tree], float]:
        def run(tree: Tree) -> float:
            assert server is not None
            with database(server) as url:
                return task(tree, url, **more)

        return run

    tasks = [
        Task("signal round trip", "ms", signal),
        Task("sleepers wake", "jobs/s", sleepers),
        *(Task(f"fan of {children:,}", "children/s", fan(children)) for children in amount.fans),
    ]
    if server is not None:
        share = waiting.POSTGRES_SHARE
        tasks.append(Task("PostgreSQL: signal round trip", "ms", there(signal)))
        tasks.append(Task("PostgreSQL: sleepers wake", "jobs/s", there(sleepers, share=share)))
    return tasks


def python_tasks() -> list[Task]:
    """Return how much Python each unit of work runs: one figure that a busy machine does not move."""
    kept: dict[str, dict[str, float]] = {}

    def of(unit: str) -> Callable[[Tree], float]:
        def run(tree: Tree) -> float:
            if unit == bytecodes.UNITS[0]:  # the others are from the same run
                program = (tree.python, bytecodes.__file__)
                done = subprocess.run(program, cwd=tree.root, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise SideFailed(done.stderr[-500:])
                kept[tree.name] = json.loads(done.stdout)
            return kept[tree.name][unit]

        return run

    return [Task(f"Python: {unit}", BYTECODES, of(unit)) for unit in bytecodes.UNITS]


def take(number: int, task: Task, tree: Tree, figures: dict[tuple[str, str], list[float]]) -> None:
    """Take one figure; a side that fails is named and has none in this round."""
    try:
        figure = task.run(tree)
    except SideFailed as error:
        print(f"  round {number + 1}  {task.name:36} {tree.name:5} failed: {error}", flush=True)
        return
    figures[task.name, tree.name].append(figure)
    print(f"  round {number + 1}  {task.name:36} {tree.name:5} {figure:>12,.2f} {task.unit}", flush=True)


def row_of(task: Task, figures: dict[tuple[str, str], list[float]]) -> dict[str, object]:
    ours, theirs = figures[task.name, NOW], figures[task.name, THEN]
    now, then = statistics.median(ours), statistics.median(theirs)
    return {
        "name": task.name,
        "unit": task.unit,
        "now": now,
        "then": then,
        "ratio": then / now if task.lower_is_better else now / then,
        "now_from_to": [min(ours), max(ours)],
        "then_from_to": [min(theirs), max(theirs)],
    }


def show(rows: list[dict]) -> None:
    """Print the table; a ratio above 1 is better, whatever is measured."""
    lines = [HEAD]
    for row in rows:
        sides = [(row[side], *row[f"{side}_from_to"]) for side in (NOW, THEN)]
        cells = [f"{figure:,.2f}" if figure < 100 else f"{figure:,.0f}" for side in sides for figure in side]
        lines.append((row["name"], *cells, row["unit"], f"{row['ratio']:.2f}"))
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    print()
    for line in lines:
        print(
            "  ".join(
                cell.ljust(width) if not column else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
        )


if __name__ == "__main__":
    sys.exit(main())
