"""A payment at a provider without keys: after a crash its list of charges is searched, and only then paid."""

from __future__ import annotations

from pathlib import Path

from tallystick import DidNotHappen, Happened, Key, Retry, Tally, Unknown

app = Tally()
bank = Path("bank.txt")  # the provider: it books whatever it is sent, twice if it is sent twice


def search(key: Key, order: int, cents: int) -> Happened[str] | DidNotHappen | Unknown:
    """Look for our reference among the latest charges; asked when a lost call can act no more."""
    booked = bank.read_text().splitlines() if bank.exists() else []
    found = [line for line in booked if line == f"{key}: {cents} cents for {order}"]
    if len(found) > 1:
        return Unknown("the bank has booked it more than once")
    return Happened(found[0]) if found else DidNotHappen()


@app.effect(key="order-{order}", probe=search, timeout="1s", settle="100ms", retry=Retry(3))
def charge(key: Key, order: int, cents: int) -> str:
    """Put the key into the text of the charge: that is what can be searched for."""
    text = f"{key}: {cents} cents for {order}"
    with bank.open("a") as ledger:
        ledger.write(f"{text}\n")
    return text


@app.workflow(attempts=99)
def checkout(order: int) -> str:
    return charge(order, 1999)


if __name__ == "__main__":
    job = checkout.opts(idempotency_key="order-7").submit(7)
    with app.worker(lease="1s"):
        print(job.result("60s"))

# Output:
# order-7: 1999 cents for 7
