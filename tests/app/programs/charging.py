"""A worker that charges at a provider, and dies where it is told to: at some commit, or in the call.

It prints what the job has returned.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request

from tallystick import DidNotHappen, Happened, Key, Retry, Tally


def main(url: str, port: str, path: str, dies: str) -> None:
    app = Tally(url)
    home = f"http://127.0.0.1:{port}"

    def die(where: str) -> None:
        if dies == where:
            os.kill(os.getpid(), signal.SIGKILL)

    def find(key: Key, order: int) -> Happened[str] | DidNotHappen:
        die("in the probe")
        with urllib.request.urlopen(f"{home}/charges/{key}", timeout=5) as answer:
            return Happened(f"for {key}") if json.load(answer)["charged"] else DidNotHappen()

    @app.effect(
        key="charge-{order}", probe=find, timeout="500ms", settle="100ms", retry=Retry(9, first="1ms")
    )
    def charge(key: Key, order: int) -> str:
        die("before the call")
        request = urllib.request.Request(f"{home}{path}", b"", {"Idempotency-Key": key}, method="POST")
        with urllib.request.urlopen(request, timeout=5) as answer:
            receipt: str = json.load(answer)["receipt"]
        die("after the call")
        return receipt

    @app.step
    def note(receipt: str) -> str:
        return receipt

    @app.workflow(attempts=99)
    def order(number: int) -> str:
        return note(charge(number))

    job = order.opts(idempotency_key="one").submit(7)
    with app.worker(concurrency=1, lease="1s"):
        sys.stdout.write(f"{job.result(60)}\n")
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
