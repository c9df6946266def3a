"""A fan of children shares its flushes: births, wait and claims are in one, ends and answer in another."""

from __future__ import annotations

from tallystick import aio
from tallystick.testing.stepping import count_flushes, is_at_rest
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
            wait_until(lambda: is_at_rest(app))
            before = count_flushes(app)
            assert fan.submit(10).result(60) == 45
            costs.append(count_flushes(app) - before)
    # The worker may happen to look for work in between, which is a flush of its own.
    assert min(costs) <= 5
