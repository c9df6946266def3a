"""Run every benchmark: `python -m bench [--quick] [--only NAME] [--rounds N]`.

A missed goal is printed and does not fail the run: a shared disk can miss it for us. A benchmark that breaks
does. The figures are kept in `results/latest.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from pathlib import Path

from bench import table

MODULES = (
    "kernel",
    "postgres",
    "waiting",
    "runs",
    "stage",
    "publishing",
    "remote",
    "verifying",
    "operating",
    "azure",
)
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Benchmarks against peers and limits."
    )
    parser.add_argument("--quick", action="store_true", help="everything once and smaller")
    parser.add_argument("--only", choices=MODULES, action="append", help="run only this one (repeatable)")
    parser.add_argument("--rounds", type=int, help="more rounds, for a calmer median (quick: mostly one)")
    options = parser.parse_args()
    rows = []
    taken: dict[str, float] = {}
    for name in options.only or MODULES:
        print(f"{name}:", flush=True)
        begun = time.monotonic()
        rows += import_module(f"bench.{name}").main(quick=options.quick, rounds=options.rounds)
        taken[name] = time.monotonic() - begun
    print()
    table.show(rows)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(rows, indent=1) + "\n")
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in taken.items())
    print(f"\n{sum(taken.values()):.0f} s ({parts}); figures in bench/results/latest.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
