"""A remote worker in a process of its own: `python -m bench.remote_sides.work URL KEY CONCURRENCY`."""

from __future__ import annotations

import signal
import sys

from tallystick.remote import RemoteWorker

url, key, concurrency = sys.argv[1:]
worker = RemoteWorker(url, key, services=["s"], concurrency=int(concurrency))
signal.signal(signal.SIGTERM, lambda *_: worker.stop())


@worker.handle("s")
def work(directive):
    return directive.payload["n"]


worker.run()
