"""Run this twice: the first run dies by SIGKILL in the middle, the second goes on where it stopped.

The price was recorded before the crash, so the second run does not ask for it again.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tallystick import Tally

app = Tally("sqlite:///example-02.db")
died = Path("example-02.died")


def say(text: str) -> None:
    print(text)
    sys.stdout.flush()


@app.step
def ask_price(order: int) -> int:
    say(f"asking for the price of order {order}")
    return 4_200


@app.step
def print_label(order: int) -> str:
    if not died.exists():
        died.touch()
        say("power cut")
        os.kill(os.getpid(), signal.SIGKILL)
    say(f"printing the label of order {order}")
    return f"label-{order}"


@app.workflow
def ship(order: int) -> str:
    price = ask_price(order)
    return f"{print_label(order)}, {price / 100:.2f} paid"


if __name__ == "__main__":
    with app.worker(lease="1s"):  # so that a dead process is noticed after one second; the default is 30
        job = ship.opts(idempotency_key="order-7").submit(7)  # the same key: the same job, in both runs
        say(job.result(timeout="30s"))
        say(f"attempts: {job.row().attempt}")
    app.close()

# Output of the first run, which ends by SIGKILL:
# asking for the price of order 7
# power cut
# Output:
# printing the label of order 7
# label-7, 42.00 paid
# attempts: 2
