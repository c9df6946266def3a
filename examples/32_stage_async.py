"""The same on asyncio: retries by error class, a timeout, skipped items, and a window by cost."""

from __future__ import annotations

import asyncio

from tallystick.stage import CommitBatch, RetryPolicy, SkipItem, Stage, WindowLimits

tries: dict[int, int] = {}


async def fetch(page: int) -> str:
    tries[page] = tries.get(page, 0) + 1
    await asyncio.sleep(0.001 * (page % 7))
    if page % 10 == 3 and tries[page] == 1:
        raise ConnectionError("try me again")
    if page % 10 == 5:
        raise SkipItem("nothing on this page")
    return f"page {page}"


async def save(batch: CommitBatch[str]) -> None:
    # The first seq of a batch is its identity: remember it in the same transaction as the data, and a batch
    # that is delivered again after a crash is recognised.
    print(f"from {batch.first}: {[outcome.value for outcome in batch.outcomes if outcome.ok]}")


async def main() -> None:
    stage = Stage(
        fetch,
        commit=save,
        workers=8,
        timeout="5s",
        retry=RetryPolicy(attempts_max=3, base_ms=5, retryable=frozenset({"ConnectionError"})),
        windows=WindowLimits(count=16, cost=40),
        cost_of=lambda page: 1 + page % 7,
    )
    print(await stage.run_async(range(40)))


asyncio.run(main())
