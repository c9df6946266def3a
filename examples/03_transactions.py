"""A tx is exactly once, although the worker dies inside it after the INSERT, and again right behind it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tallystick import Tally, Tx

app = Tally("sqlite:///example-03.db")


def die_once(where: str) -> None:
    if not (mark := Path(f"example-03.died-{where}")).exists():
        mark.touch()
        print(f"  kill -9 {where} the transaction", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


@app.tx
def book(db: Tx, order: int) -> None:
    db.execute("INSERT INTO bookings VALUES (?)", [order])
    die_once("inside")


@app.step
def confirm(order: int) -> str:
    die_once("behind")
    return f"order {order} is booked"


@app.workflow
def buy(order: int) -> str:
    book(order)
    return confirm(order)


if __name__ == "__main__":
    if sys.argv[1:]:  # the worker process
        with app.worker(lease="500ms"):
            print(" ", app.job(sys.argv[1]).result("20s"), flush=True)
        sys.exit()
    with app.transaction() as db:
        db.execute("CREATE TABLE bookings (order_id INTEGER NOT NULL) STRICT")
    job = buy.submit(7)
    while subprocess.run([sys.executable, __file__, job.id], check=False).returncode:  # noqa: S603 (it is us)
        with app.transaction() as db:
            print("  rows that survived:", db.execute("SELECT count(*) FROM bookings")[0][0], flush=True)
    print(*[event.name for event in job.history()])

# Output:
#   kill -9 inside the transaction
#   rows that survived: 0
#   kill -9 behind the transaction
#   rows that survived: 1
#   order 7 is booked
# submit claim reclaim claim tx reclaim claim step return
