"""Run the sweep from a shell: `python -m tests.crash.sweep --seconds 60 --seed 1`."""

from __future__ import annotations

import argparse
import sys

from tallystick.ids import SystemIds
from tests.crash.sweep.sweep import Sweep, new_folder


def main() -> int:
    """Return 0 if every point was hit, every control caught, and nothing lost, doubled, stuck or broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.sweep", description="Kill workers everywhere; check the books."
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="how long to go on (the fixed part always runs; of both stores: half each)",
    )
    parser.add_argument(
        "--seed", default=SystemIds().token()[:8], help="repeat the cases of an earlier sweep"
    )
    parser.add_argument(
        "--store", choices=("sqlite", "postgres", "both"), default="sqlite", help="where the books are kept"
    )
    parser.add_argument("--quick", action="store_true", help="only the fixed part and a few pairs")
    parser.add_argument("--share", type=int, default=1, help="kill at one point of so many (all)")
    options = parser.parse_args()
    stores = ("sqlite", "postgres") if options.store == "both" else (options.store,)
    seconds = options.seconds / len(stores)
    well = [
        _sweep(store, options.seed, seconds, quick=options.quick, share=options.share) for store in stores
    ]
    return 0 if all(well) else 1


def _sweep(store: str, seed: str, seconds: float, *, quick: bool, share: int) -> bool:
    """Sweep one store; a server is started for it and gone afterwards."""
    if store == "sqlite":
        return Sweep(seed, seconds, quick=quick, folder=new_folder(), share=share).run()
    from tallystick.store.postgres import store as _points  # noqa: F401 (it declares its points, and needs psycopg)
    from tallystick.testing.postgres_server import make_server

    server = make_server(fsync=False)
    try:
        sweep = Sweep(seed, seconds, quick=quick, folder=new_folder(), server=server.dsn, share=share)
        return sweep.run()
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main())
