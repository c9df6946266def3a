"""Cut the power at moments of chance: `python -m tests.power_loss --seconds 60`."""

from __future__ import annotations

import argparse
import sys

from tallystick.ids import SystemIds
from tests.power_loss.run import Run


def main() -> int:
    """Return 0 if nothing was lost or broken, 1 if something was, 2 if the control has lost nothing."""
    parser = argparse.ArgumentParser(
        prog="power_loss", description="Cut the power on paper; look what is left."
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--seed", default="", help="choose the same moments as an earlier run")
    options = parser.parse_args()
    seed = options.seed or SystemIds().token()[:8]
    tally = Run(options.seconds, seed).go()
    for line in tally.shown:
        print(line)
    if tally.invalid:
        print(f"INVALID: {tally.invalid}")
    if not tally.clean:
        print(f"seed {seed}; each folder above holds the files as they were found")
    print(tally)
    return 2 if tally.invalid else int(not tally.clean)


if __name__ == "__main__":
    sys.exit(main())
