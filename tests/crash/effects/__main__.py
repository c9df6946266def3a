"""Run crash cases of effects from a shell: `python -m tests.crash.effects --cases 2000 --store postgres`."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tests.crash.effects.run import Cases
from tests.crash.sweep.sweep import new_folder

_FIGURES = ("cases", "points", "kills", "doubles", "denied", "invented", "stuck")


def main() -> int:
    """Return 0 if no case went wrong and both controls have shown the double."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.effects", description="Kill around a charge."
    )
    parser.add_argument("--cases", type=int, default=240, help="how many")
    parser.add_argument("--seed", default="effects", help="repeat the cases of an earlier run")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    folder = new_folder()
    if options.store == "sqlite":
        return _run(folder, f"sqlite:///{folder}/shop.db", options)
    from tallystick.testing.postgres_server import make_server

    server = make_server(fsync=False)
    try:
        return _run(folder, server.dsn, options)
    finally:
        server.remove()


def _run(folder: Path, url: str, options: argparse.Namespace) -> int:
    runs = Cases(folder, url, options.store)
    try:
        well = runs.run(options.seed, options.cases)
        shown = [
            runs.control(1_000_000, stopped=True),
            runs.control(1_000_001, stopped=False),
            runs.control(1_000_002, stopped=True, dedupes=True),
        ]
    finally:
        runs.close()
    for wrong in runs.wrong:
        sys.stdout.write(f"{wrong}\n")
    well = well and shown == [2, 2, 1]
    if well:
        shutil.rmtree(folder)
    figures = " ".join(f"{name}={runs.figures[name]}" for name in _FIGURES)
    sys.stdout.write(f"effects: store={options.store} controls={shown}\neffects: {figures}\n")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
