"""A shop with a step, a transaction and a step, for tests that disturb its server or kill its workers.

python -m tests.postgres.shop ADDRESS
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tallystick import Tally, Tx
from tallystick.app.api.workflows import Workflow

LIVE = "status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED')"


def shop_on(app: Tally, ended: Callable[[], Any] = lambda: None) -> Workflow[[int], int]:
    """Declare the shop and return its workflow, which returns five times its argument.

    `ended` is called at the end of each run of it.
    """

    @app.step
    def quote(n: int) -> int:
        return n * 2

    @app.tx
    def charge(db: Tx, n: int) -> int:
        db.execute("INSERT INTO effects VALUES (%s)", [n])
        return n

    @app.workflow(attempts=50)
    def checkout(n: int) -> int:
        total = quote(n) + charge(n) + quote(n)
        ended()
        return total

    return checkout


def make_effects(app: Tally) -> None:
    """Make the table of effects, which has no unique key: whatever is done twice is there twice."""
    with app.transaction() as db:
        db.execute("CREATE TABLE effects (n INTEGER)")


if __name__ == "__main__":
    served = Tally(sys.argv[1])
    shop_on(served)
    served.work(concurrency=4, lease="2s")
