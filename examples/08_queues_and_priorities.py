"""Queues say who does the work, priorities what comes first, a delay when it may start at the earliest.

A worker serves the queues it was given, in that order, and inside a queue 0 comes before 9.
"""

from __future__ import annotations

from tallystick import Tally

app = Tally("sqlite:///example-08.db")
done: list[str] = []


@app.workflow
def mail(to: str) -> None:
    done.append(f"mail to {to}")


@app.workflow(queue="slow")
def video(name: str) -> None:
    done.append(f"video {name}")


if __name__ == "__main__":
    jobs = [
        video.submit("holiday"),
        mail.submit("Ada"),  # the default priority is 5
        mail.opts(priority=9).submit("everybody"),
        mail.opts(priority=0).submit("the fire brigade"),
        mail.opts(delay="300ms", priority=0).submit("Ada, a little later"),
    ]

    # One slot, so that the order is visible; `slow` is served when `default` has nothing that is due.
    with app.worker(queues=["default", "slow"], concurrency=1):
        for job in jobs:
            job.result("10s")
    print("\n".join(done))

    # A worker for one queue leaves the others alone.
    done.clear()
    other = video.submit("birthday")
    with app.worker(queues=["default"]):
        mail.submit("Grace").result("10s")
    print(done, "-", other.state())
    app.close()

# Output:
# mail to the fire brigade
# mail to Ada
# mail to everybody
# video holiday
# mail to Ada, a little later
# ['mail to Grace'] - QUEUED
