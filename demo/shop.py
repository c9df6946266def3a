"""The program of the demo, written as a user would write it: an order is reserved, priced, paid and shipped.

The three transactions write to tables without a unique key, so that nothing but Tallystick keeps an order
from being paid twice. The two steps pretend to call a slow service, and note every call in a plain file
outside the database, so that a repeated call can be seen.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final

from tallystick import Tally, Tx

app: Final = Tally()

TABLES: Final = """
    CREATE TABLE reserved (order_id INTEGER NOT NULL, pid INTEGER NOT NULL) STRICT;
    CREATE TABLE payments (order_id INTEGER NOT NULL, cents INTEGER NOT NULL, pid INTEGER NOT NULL) STRICT;
    CREATE TABLE parcels  (order_id INTEGER NOT NULL, label TEXT NOT NULL, pid INTEGER NOT NULL) STRICT;
"""
CALLS_FILE: Final = "TALLYSTICK_DEMO_CALLS"
PAUSE_UNIT: Final = "TALLYSTICK_DEMO_PAUSE"
CALLS_A_JOB: Final = ("reserve", "quote", "pay", "pack", "ship")


@app.tx
def reserve(db: Tx, order: int) -> None:
    """Reserve the goods: exactly once."""
    db.execute("INSERT INTO reserved VALUES (?, ?)", (order, os.getpid()))


@app.step
def quote(order: int) -> int:
    """Ask a slow service for the price: at least once, and the answer is kept."""
    call_a_slow_service("quote", order)
    return price_of(order)


@app.tx
def pay(db: Tx, order: int, cents: int) -> None:
    """Book the payment: exactly once."""
    db.execute("INSERT INTO payments VALUES (?, ?, ?)", (order, cents, os.getpid()))


@app.step
def pack(order: int) -> str:
    """Ask a slow service for a parcel label: at least once, and the answer is kept."""
    call_a_slow_service("pack", order)
    return f"parcel-{order:04d}"


@app.tx
def ship(db: Tx, order: int, label: str) -> None:
    """Hand the parcel over: exactly once."""
    db.execute("INSERT INTO parcels VALUES (?, ?, ?)", (order, label, os.getpid()))


@app.workflow
def checkout(order: int) -> str:
    """Take one order from the basket to the parcel."""
    reserve(order)
    cents = quote(order)
    pay(order, cents)
    label = pack(order)
    ship(order, label)
    return label


def price_of(order: int) -> int:
    """Return what an order costs; the audit computes it again."""
    return 995 + order * 37 % 4_000


def call_a_slow_service(name: str, order: int) -> None:
    """Note the call where no transaction can take it back, then take a while."""
    with Path(os.environ[CALLS_FILE]).open("a", encoding="ascii") as file:
        file.write(f"{name} {order} {os.getpid()}\n")
    unit = float(os.environ.get(PAUSE_UNIT, "0.05"))
    threading.Event().wait(unit * (4 + order * 7 % 9))


def work(slots: int, lease: str) -> None:
    """Be a worker until told to stop, or until whoever started us has gone; say first who we are."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    threading.Thread(target=_until_nobody_listens, args=(stop,), daemon=True).start()
    with app.worker(concurrency=slots, lease=lease, grace="2s"):
        worker = app.runtime().worker
        assert worker is not None
        print(worker.owner, flush=True)
        stop.wait()
    app.close()


def _until_nobody_listens(stop: threading.Event) -> None:
    """Set the event when stdin ends, which it does when the parent dies, however it dies."""
    os.read(0, 1)
    stop.set()


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2])
