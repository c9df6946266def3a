"""One call wakes many jobs: found by a tag, told by `send_many`; none of them holds anything while it waits.

Around the worker, what is needed once a process: a connection that is opened before the first job and closed
after the last.
"""

from __future__ import annotations

import time

from tallystick import Tally, aio

app = Tally("sqlite:///example-14.db")
shop: dict[str, str] = {}


@app.on_worker_start
async def open_shop() -> None:
    shop["state"] = "open"
    print("the worker has a shop")


@app.on_worker_stop
async def close_shop() -> None:
    print("the worker has closed it")


@app.step
async def sell(customer: int, price: int) -> str:
    return f"customer {customer} bought for {price} in a shop that was {shop['state']}"


@app.workflow
async def bargain(customer: int) -> str | None:
    price = await aio.wait("sale", int, timeout="30d")
    return None if price is None else await sell(customer, price)


if __name__ == "__main__":
    for customer in range(100):
        bargain.opts(tags=["waiting-list", f"customer:{customer}"]).submit(customer)
    with app.worker(concurrency=50):
        waiting = app.jobs(tag="waiting-list")
        while {job.history()[-1].name for job in waiting} != {"suspend"}:
            time.sleep(0.01)
        told = app.send_many(waiting, "sale", 5, id="summer")
        told += app.send_many(waiting, "sale", 5, id="summer")  # repeated, and the same signal
        print({answer.name for answer in told[:100]}, {answer.name for answer in told[100:]} <= {"KNOWN"})
        for job in app.jobs(tag="customer:42"):
            print(job.result("10s"), job.tags)
    app.close()

# Output:
# the worker has a shop
# {'WOKE'} True
# customer 42 bought for 5 in a shop that was open ('waiting-list', 'customer:42')
# the worker has closed it
