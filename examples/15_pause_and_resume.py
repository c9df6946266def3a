"""Pausing: a running job stops at its next call, a waiting one keeps what arrives, and both go on later."""

from __future__ import annotations

import threading
import time

from tallystick import Tally, wait

app = Tally("sqlite:///example-15.db")
begun = threading.Event()


@app.step
def send_letter(n: int) -> int:
    begun.set()
    time.sleep(0.002)  # a slow service
    return n


@app.workflow
def campaign(letters: int) -> int:
    return sum(send_letter(n) >= 0 for n in range(letters))


@app.workflow
def approval() -> str:
    return "approved" if wait("approve", bool) else "declined"


if __name__ == "__main__":
    waiting = approval.submit()
    print("queued:", waiting.pause("the office is closed").name)
    with app.worker():
        job = campaign.submit(1_000)
        begun.wait(10)
        print("running:", job.pause("the printer is empty").name)
        while job.history()[-1].name != "hold":
            time.sleep(0.01)
        print("stopped before the end:", len(job.history()) < 1_000)

        waiting.send("approve", True)  # kept: nobody runs the job before it is resumed
        print(waiting.state(), waiting.row().hold, waiting.row().hold_reason)

        print(waiting.resume().name, waiting.result("10s"))
        print(job.resume().name, job.result("20s"))  # from where it stopped; no letter is sent twice

# Output:
# queued: HELD
# running: ASKED
# stopped before the end: True
# QUEUED PAUSED the office is closed
# FREE approved
# FREE 1000
