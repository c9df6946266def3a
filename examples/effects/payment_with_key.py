"""A payment at a provider that dedupes by key: kill this anywhere and run it again, it charges once."""

from __future__ import annotations

import json
from pathlib import Path

from tallystick import DidNotHappen, Happened, Key, Retry, Tally

app = Tally()
bank = Path("bank.txt")  # the provider: one line per charge, and it knows the key of each


def charges() -> dict[str, str]:
    lines = bank.read_text().splitlines() if bank.exists() else []
    return dict(json.loads(line) for line in lines)


def receipt(order: int, cents: int) -> str:
    return f"{cents} cents for order {order}"


def find_charge(key: Key, order: int, cents: int) -> Happened[str] | DidNotHappen:
    return Happened(receipt(order, cents)) if key in charges() else DidNotHappen()


@app.effect(key="charge:{order}", probe=find_charge, timeout="1s", settle="100ms", retry=Retry(3))
def charge(key: Key, order: int, cents: int) -> str:
    """Send the key along: a second request under it is answered with the first charge."""
    if key not in charges():
        with bank.open("a") as ledger:
            ledger.write(json.dumps([key, receipt(order, cents)]) + "\n")
    return charges()[key]


@app.workflow(attempts=99)
def checkout(order: int) -> str:
    return charge(order, 1999)


if __name__ == "__main__":
    job = checkout.opts(idempotency_key="order-7").submit(7)
    with app.worker(lease="1s"):
        print(job.result("60s"))

# Output:
# 1999 cents for order 7
