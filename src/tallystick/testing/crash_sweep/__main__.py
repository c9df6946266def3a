"""Run the sweep from a shell: `python -m tallystick.testing.crash_sweep --seconds 60 --seed 1`."""

from __future__ import annotations

import argparse
import sys

from tallystick.ids import SystemIds
from tallystick.testing.crash_sweep.sweep import Sweep, new_folder


def main() -> int:
    """Return 0 if every point was hit, every control caught, and nothing lost, doubled, stuck or broken."""
    parser = argparse.ArgumentParser(
        prog="crash_sweep", description="Kill workers everywhere; check the books."
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long to go on (the fixed part always runs)"
    )
    parser.add_argument(
        "--seed", default=SystemIds().token()[:8], help="repeat the cases of an earlier sweep"
    )
    parser.add_argument("--quick", action="store_true", help="only the fixed part and a few pairs")
    options = parser.parse_args()
    sweep = Sweep(options.seed, options.seconds, quick=options.quick, folder=new_folder())
    return 0 if sweep.run() else 1


if __name__ == "__main__":
    sys.exit(main())
