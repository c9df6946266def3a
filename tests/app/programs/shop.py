"""The first example of the design, as it is written there, without `effect`, `remote` and `map`.

Only the bodies that the design leaves out are filled in: `charge` stops the first time until its process is
killed. The clock may run ahead, so that an hour need not be waited out.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tallystick import Retry, Tally, Tx, sleep, wait
from tests.ahead_clock import AheadClock

FOLDER = Path(os.environ["SHOP_FOLDER"])
MARK = "?" if os.environ["SHOP_URL"].startswith("sqlite") else "%s"


app = Tally(os.environ["SHOP_URL"], clock=AheadClock(int(os.environ.get("SHOP_AHEAD_MS", "0"))))


@app.step(retry=Retry(5))
def quote(order: int) -> int:
    return order * 100


@app.tx
def reserve(db: Tx, order: int) -> None:
    db.execute(f"insert into reserved values ({MARK})", [order])


@app.step
def charge(order: int) -> str:
    if not (FOLDER / "charging").exists():
        (FOLDER / "charging").write_text(str(os.getpid()), encoding="utf-8")
        signal.pause()
    return f"charged {order}"


@app.step
def pack(order: int) -> str:
    return f"packed {order}"


@app.workflow
def checkout(order: int) -> str:  # or async def
    reserve(order)
    charge(order)
    if not wait("approve", bool, timeout="2d"):
        return "declined"
    sleep("1h")
    return pack(order)


if __name__ == "__main__":
    sys.stdout.write("working\n")
    sys.stdout.flush()
    app.work(lease="2s")
