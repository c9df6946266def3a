"""Async workflows run as tasks on one event loop of the worker; a hundred of them need no hundred threads.

An async step is awaited. A sync step or a tx is called with `.aio` and runs in a thread; calling it bare
would block the loop and is refused.
"""

from __future__ import annotations

import asyncio

from tallystick import Tally, Tx

app = Tally("sqlite:///example-06.db")


@app.step
async def fetch(page: str) -> int:
    await asyncio.sleep(0.01)
    return len(page) * 100


@app.tx
def save(db: Tx, site: str, size: int) -> None:
    db.execute("INSERT INTO sizes VALUES (?, ?)", [site, size])


@app.workflow
async def measure(site: str) -> int:
    # Calls at the same time get names of their own, so that a replay can tell them apart.
    pages = ["home", "about"]
    sizes = await asyncio.gather(*(fetch.named(page)(page) for page in pages))
    await save.aio(site, sum(sizes))
    return sum(sizes)


async def main() -> None:
    with app.worker(concurrency=100):
        jobs = [await measure.submit_aio(f"site-{number}") for number in range(100)]
        sizes = await asyncio.gather(*jobs)  # a job can be awaited
    print(f"{len(jobs)} jobs measured {sum(sizes)} bytes")
    print("calls of one job:", " ".join(event.name for event in jobs[0].history()))


if __name__ == "__main__":
    with app.transaction() as db:
        db.execute("CREATE TABLE sizes (site TEXT, size INTEGER)")
    asyncio.run(main())
    with app.transaction() as db:
        print("rows and bytes on file:", *db.execute("SELECT count(*), sum(size) FROM sizes")[0])
    app.close()

# Output:
# 100 jobs measured 90000 bytes
# calls of one job: submit claim step step tx return
# rows and bytes on file: 100 90000
