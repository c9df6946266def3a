"""Cancelling: a running job meets `Cancelled` at its next call; one that waits ends where it stands."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from tallystick import Cancelled, JobCancelled, Tally, wait

app = Tally("sqlite:///example-12.db")
begun = threading.Event()


@app.step
def reserve(seat: int) -> int:
    begun.set()
    time.sleep(0.01)  # a slow service
    return seat


@app.step
def release() -> None:
    print("giving back what was reserved", flush=True)


@app.workflow
def group_booking(seats: int) -> None:
    try:
        for seat in range(seats):
            reserve(seat)
    except Cancelled:  # not an Exception: only code that means it catches it
        release()  # steps may be called until the grace is over
        raise


@app.workflow
def on_request() -> None:
    wait("seats", int)


if __name__ == "__main__":
    waiting = on_request.submit()
    with app.worker():
        booking = group_booking.submit(100_000)
        begun.wait(10)
        print(booking.cancel(grace="5s"))
        with suppress(JobCancelled):
            booking.result("10s")
        while waiting.history()[-1].name != "suspend":
            time.sleep(0.01)
        print("a waiting one is", waiting.cancel())

# Output:
# CANCELLING
# giving back what was reserved
# a waiting one is CANCELLED
