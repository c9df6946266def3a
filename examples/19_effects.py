"""Run this twice: the first run dies while it charges, the second asks what happened, and never guesses."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tallystick import DidNotHappen, Happened, Key, Tally

app = Tally("sqlite:///example-19.db")
bank = Path("bank.txt")  # what the bank has done; it knows nothing of keys


def find_charge(key: Key, order: int) -> Happened[str] | DidNotHappen:
    print("  asking the bank about", key, flush=True)
    done = bank.read_text().splitlines() if bank.exists() else []
    return Happened("charged") if str(order) in done else DidNotHappen()


@app.effect(key="charge:{order}", probe=find_charge, timeout="100ms", settle="100ms")
def charge(key: Key, order: int) -> str:
    print("  charging under", key, flush=True)
    bank.write_text(f"{order}\n")
    os.kill(os.getpid(), signal.SIGKILL)  # the bank has acted, and its answer is lost
    return "charged"


@app.effect(key="mail:{order}", timeout="1s")  # no probe: only a person can find out
def send_mail(key: Key, order: int) -> str:
    raise ConnectionResetError(f"the line was cut: {key}, {order}")


@app.workflow
def checkout(order: int) -> str:
    return f"{charge(order)}, {send_mail(order)}"


if __name__ == "__main__":
    job = checkout.opts(idempotency_key="order-42").submit(42)
    with app.worker(lease="1s"):
        while job.row().hold is None:
            app.runtime().pause(50)
        print(job.row().hold, "charges:", len(bank.read_text().split()))
        job.resolve(happened="mailed", by="ann")
        print(job.result("10s"))

# Output of the first run, which ends by SIGKILL:
#   charging under charge:42
# Output:
#   asking the bank about charge:42
# IN_DOUBT charges: 1
# charged, mailed
