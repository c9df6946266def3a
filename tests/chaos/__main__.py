"""Mixed work in several processes with a nemesis: `python -m tests.chaos --seconds 60 --store both`."""

from __future__ import annotations

import argparse
import signal
import sys

from tallystick.ids import SystemIds
from tests.chaos.run import Run, last_line, report


def main() -> int:
    """Return 0 if nothing was lost, doubled or stuck and the books balance, 1 if not, 2 for an empty run."""
    parser = argparse.ArgumentParser(
        prog="chaos", description="Do harm to a crew at work; judge what is left."
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long to do harm (of both: half each)"
    )
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--seed", default="", help="choose the same nemeses as an earlier run")
    parser.add_argument("--only", default="", help="names of nemeses, with commas between them")
    parser.add_argument(
        "--asynchronous",
        action="store_true",
        help="promote a standby that may lag behind: acknowledged work may be lost, but not be wrong",
    )
    options = parser.parse_args()
    # Whatever ends the run, its processes and its file system go with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    seed = options.seed or SystemIds().token()[:8]
    stores = ("sqlite", "postgres") if options.store == "both" else (options.store,)
    only = [name.strip() for name in options.only.split(",") if name.strip()]
    outcomes = []
    for store in stores:
        run = Run(store, options.seconds / len(stores), seed, only, relaxed=options.asynchronous)
        outcomes.append(run.go())
        report(outcomes[-1])
    print(last_line(outcomes))
    if any(outcome.invalid for outcome in outcomes):
        return 2
    return 0 if all(outcome.verdict.clean for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
