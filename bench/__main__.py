"""Run every benchmark: `python -m bench [--quick] [--only NAME]`.

A missed goal is printed and does not fail the run: a shared disk can miss it for us. A benchmark that breaks
does. The figures are kept in `results/latest.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from bench import table

MODULES = ("kernel", "postgres", "waiting", "runs", "stage")
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Benchmarks against peers and limits."
    )
    parser.add_argument("--quick", action="store_true", help="everything smaller, under three minutes")
    parser.add_argument("--only", choices=MODULES, action="append", help="run only this one (repeatable)")
    options = parser.parse_args()
    begun = time.monotonic()
    rows = []
    for name in options.only or MODULES:
        if find_spec(f"bench.{name}") is None:
            print(f"bench.{name} is not there: skipped")
            continue
        print(f"{name}:", flush=True)
        rows += import_module(f"bench.{name}").main(quick=options.quick)
    print()
    table.show(rows)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\n{time.monotonic() - begun:.0f} s; figures in bench/results/latest.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
