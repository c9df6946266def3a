"""What waiting costs on both stores, beside another revision: `make bench-waits REV=82afe54`.

Turns, children one after the other, jobs that are sent their signals, and waits in the store alone. Both
environments run the program of this tree, one after the other, and every second round the other one goes
first. A figure is the median of its rounds; processor time is that of the process and of its server, and says
more than seconds do on a machine that others use.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple

from bench.against import NOW, THEN, Tree, a_server, show, the_trees
from bench.on_postgres.server import database
from bench.side import ROOT, Side, measure
from tallystick.testing.postgres_server import Server

PROGRAM = str(ROOT / "bench" / "waits_ours.py")
SLOTS = 256
TURNS, CHILDREN, WAITERS, BATCHES, IN_BATCH = 200, 200, 1_000, 40, 16


class Case(NamedTuple):
    """One run of the program, how many units it does, and what a unit of it is called."""

    name: str
    order: dict[str, object]
    units: int


CASES = (
    Case("a turn", {"case": "again", "turns": TURNS}, TURNS),
    Case(f"a child of {CHILDREN} in sequence", {"case": "children", "children": CHILDREN}, CHILDREN),
    Case("a signalled waiter", {"case": "waiters", "jobs": WAITERS, "in_flight": SLOTS}, WAITERS),
    Case("a wait, in batches", {"case": "batches", "rounds": BATCHES}, BATCHES * IN_BATCH),
)
FIGURES = {"seconds": "gone by", "cpu": "our processor time", "server_cpu": "the server's"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-waits", description="What waiting costs.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each figure is taken on each side")
    options = parser.parse_args()
    trees = the_trees()
    figures: dict[tuple[str, str], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tallystick-bench-")))
        server = a_server(stack)
        places = (None,) if server is None else (None, server)
        for number in range(options.rounds):
            for place in places:
                for case in CASES:
                    for tree in trees[:: -1 if number % 2 else 1]:
                        take(case, tree, folder, place, figures)
    show(rows_of(figures))
    return 0


def take(
    case: Case, tree: Tree, folder: Path, server: Server | None, figures: dict[tuple[str, str], list[float]]
) -> None:
    """Run one case and keep its figures, in milliseconds for each unit."""
    where = "SQLite" if server is None else "PostgreSQL"
    with nullcontext("") if server is None else database(server) as url:
        side = Side(tree.name, (tree.python, PROGRAM), {"url": url}, tree.root)
        answer = measure(side, folder, **case.order).answer
    for figure, called in FIGURES.items():
        if answer[figure]:
            figures[f"{where}: {case.name}, {called}", tree.name].append(answer[figure] * 1000 / case.units)
    for figure in ("first", "last"):
        if figure in answer:
            figures[f"{where}: of the {figure} fifty children", tree.name].append(answer[figure])
    print(f"  {where:10} {case.name:32} {tree.name:5} {answer}", flush=True)


def rows_of(figures: dict[tuple[str, str], list[float]]) -> list[dict[str, object]]:
    """Return the rows of a table; less is better in all of them."""
    rows: list[dict[str, object]] = []
    for name in dict.fromkeys(name for name, _side in figures):
        now, then = figures[name, NOW], figures[name, THEN]
        row = {"name": name, "unit": "ms", "ratio": statistics.median(then) / statistics.median(now)}
        row |= {"now": statistics.median(now), "then": statistics.median(then)}
        rows.append(row | {"now_from_to": [min(now), max(now)], "then_from_to": [min(then), max(then)]})
    return rows


if __name__ == "__main__":
    sys.exit(main())
