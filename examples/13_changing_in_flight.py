"""Changing a workflow in flight: jobs that have passed the change go the old way, all others the new one.

The two programs stand for the code of last week and of today; in earnest the second replaces the first, and
the jobs that were waiting then are still in the database.
"""

from __future__ import annotations

import time

from tallystick import Tally, patched, wait

last_week = Tally("sqlite:///example-13.db")
today = Tally("sqlite:///example-13.db")


@last_week.workflow
def order(number: int) -> str:
    paid = wait("paid", int)
    return f"order {number}: {paid}"


@today.step
def tax(amount: int) -> int:
    return amount * 20 // 100


@today.workflow(name="order")
def order_with_tax(number: int) -> str:
    taxed = patched("tax")  # asked before the wait, so that it is known who had come to it already
    paid = wait("paid", int)
    if not taxed:
        return f"order {number}: {paid}"  # to be removed when no job is left that goes this way
    return f"order {number}: {paid} + {tax(paid)} tax"


if __name__ == "__main__":
    with last_week.worker():
        old = order.submit(1)
        while old.history()[-1].name != "suspend":
            time.sleep(0.01)
    last_week.close()

    with today.worker():
        new = order_with_tax.submit(2)
        today.send_many([old, new], "paid", 100)
        for job in (old, new):
            print(today.job(job.id).result("10s"))
    today.close()

# Output:
# order 1: 100
# order 2: 100 + 20 tax
