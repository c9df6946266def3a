"""A fan of children shares its flushes: births, wait and claims are in one, ends and answer in another."""

from __future__ import annotations

from tallystick import aio
from tests.patience import wait_until


def test_a_parent_and_its_children_are_five_flushes(app):
    """Submitted; born, suspended and claimed; ended, with the claim of the parent; answered and ended."""

    @app.workflow
    async def leaf(n: int) -> int:
        return n

    @app.workflow
    async def fan(n: int) -> int:
        return sum(await aio.gather(*(leaf.child(k) for k in range(n))))

    costs = []
    with app.worker(concurrency=16):
        for _ in range(5):
            wait_until(lambda: app.runtime().worker.idle)
            before = app.runtime().committer.flushes
            assert fan.submit(10).result(60) == 45
            costs.append(app.runtime().committer.flushes - before)
    # The worker may happen to look for work in between, which is a flush of its own.
    assert min(costs) <= 5
