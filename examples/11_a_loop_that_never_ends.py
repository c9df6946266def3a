"""A loop for ever: `again` begins the same job once more, with new arguments and an empty history.

So the thousandth turn replays nothing of the first. This loop ends when it is told to, so that the example
does; leave the signal out and it goes on for as long as there is a worker.
"""

from __future__ import annotations

import time

from tallystick import Job, Tally, again, wait

app = Tally("sqlite:///example-11.db")


@app.step
def read_meter(turn: int) -> int:
    return turn * 3


@app.workflow
def watch(turn: int = 1, total: int = 0) -> str:
    total += read_meter(turn)
    # In earnest this would be an hour. A signal that comes during a turn is kept for the next wait.
    stop = wait("stop", str, timeout="10ms")
    if stop is not None:
        return f"{stop} after {total}"
    return again(turn + 1, total)  # never returns: the job keeps its id, its key and its signals


def turns_of(job: Job[str]) -> int:
    return sum(event.name == "again" for event in job.history())


if __name__ == "__main__":
    with app.worker():
        job = watch.opts(idempotency_key="the-meter").submit()
        while turns_of(job) < 20:
            time.sleep(0.02)
        job.send("stop", "told to stop")
        reason, _, total = job.result("10s").partition(" after ")
    read = turns_of(job) + 1
    print(reason)
    print("no reading lost, none twice:", int(total) == sum(turn * 3 for turn in range(1, read + 1)))
    with app.connect() as db:
        print("jobs:", db.execute("SELECT count(*) FROM jobs")[0][0])
    app.close()

# Output:
# told to stop
# no reading lost, none twice: True
# jobs: 1
