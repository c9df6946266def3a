"""A worker and a remote worker in one process, which dies at some commit: one job with two remote steps.

It prints what the job has returned.
"""

from __future__ import annotations

import sys

from tallystick import Retry, Tally
from tallystick.testing.remote_hand import Heard, HeldDirective, RemoteHand
from tests.patience import let_time_pass


def main(url: str) -> None:
    app = Tally(url)

    @app.remote("warehouse", ack="500ms", lease="2s", retry=Retry(99, first="20ms", longest="20ms"))
    def pick(order: int) -> int:
        raise NotImplementedError

    @app.step
    def price(got: int) -> int:
        return got * 10

    @app.workflow(attempts=99)
    def order(number: int) -> int:
        return price(pick(number)) + pick(number + 1)

    job = order.opts(idempotency_key="one").submit(3)
    warehouse = RemoteHand(app, "warehouse")
    held: HeldDirective | None = None
    with app.worker(concurrency=1, lease="1s"):
        while (row := job.row()) is None or row.completed_at is None:
            held = held or warehouse.look()
            if held is None:
                let_time_pass(0.02)
                continue
            if held.ack() in (Heard.ACCEPTED, Heard.DUPLICATE):
                held.succeed(held.payload["order"] + 1)
            held = None
        sys.stdout.write(f"{job.result(5)}\n")
    app.close()


if __name__ == "__main__":
    main(sys.argv[1])
