"""`make demo-dashboard`: a lively store, two workers, a kill now and then, and the dashboard."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from itertools import count
from pathlib import Path
from typing import Any

_WORK = [sys.executable, "-m", "tallystick", "work", "demo.lively:app"]
_SERVE = [sys.executable, "-m", "tallystick", "serve", "demo.lively:app", "--bind"]
_KILL_EVERY = 90


def main() -> None:
    """Fill a store until Ctrl-C; the server prints the link that opens the dashboard."""
    folder = Path(tempfile.mkdtemp(prefix="tallystick-demo-"))
    os.environ["TALLY_URL"] = f"sqlite:///{folder / 'shop.db'}"
    from demo.lively import app, approval, checkout, newsletter, stocktaking  # noqa: PLC0415 (reads the address)

    bind = os.environ.get("BIND", "127.0.0.1:8000")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    app.runtime()
    server = subprocess.Popen([*_SERVE, bind])
    workers = [subprocess.Popen(_WORK, **quiet) for _ in range(2)]
    tagged = [workflow.opts(tags=["demo"]) for workflow in (checkout, approval)]
    those: list[Any] = [checkout, checkout, newsletter, *tagged]
    chance = random.Random(7)  # noqa: S311 (which job comes next in a demo)
    print("Jobs come in, a worker is killed every 90 seconds, and Ctrl-C ends it.", flush=True)
    try:
        for order in count(1):
            if stop.wait(0.4) or server.poll() is not None:
                break
            chance.choice(those).submit(order)
            if order % 25 == 0:
                stocktaking.submit(order % 7 + 3)
            if order % int(_KILL_EVERY / 0.4) == 0:
                workers[0].kill()
                workers[0].wait()
                workers = [*workers[1:], subprocess.Popen(_WORK, **quiet)]
    except KeyboardInterrupt:
        print("stopping", flush=True)
    finally:
        for process in (*workers, server):
            process.terminate()
        for process in (*workers, server):
            process.wait()
        app.close()


if __name__ == "__main__":
    main()
