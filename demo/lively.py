"""The program of `make demo-dashboard`: a shop whose jobs end well, fail, wait and are in doubt."""

from __future__ import annotations

import os

from tallystick import Key, Retry, Tally, gather, sleep, wait

app = Tally(os.environ.get("TALLY_URL", "sqlite:///demo-dashboard.db"))
app.queue("emails", concurrency=2, rate="60/1m")
_SLOW = 4
_LOST = 17
_BROKEN = 11


@app.step(retry=Retry(3, first="1s"))
def quote(order: int) -> int:
    """Return a price; every eleventh order has none."""
    if order % _BROKEN == 0:
        raise ValueError(f"there is no price for order {order}")
    sleep_a_little(order)
    return order * 7


@app.effect(key="charge:{order}")
def charge(key: Key, order: int) -> str:
    """Charge a card; now and then the connection breaks after the request was sent."""
    if order % _LOST == 0:
        raise ConnectionError(f"{key}: the connection was reset after the request was sent")
    return f"receipt {order}"


def sleep_a_little(order: int) -> None:
    """Take some time, as real work does."""
    total = 0
    for number in range(200_000 * (1 + order % _SLOW)):
        total += number


@app.workflow
def checkout(order: int) -> str:
    """Sell something."""
    quote(order)
    return charge(order)


@app.workflow
def approval(order: int) -> str:
    """Wait for a person, for an hour at most."""
    quote(order + 1)
    return "approved" if wait("approve", bool, timeout="1h") else "refused"


@app.workflow(queue="emails")
def newsletter(number: int) -> int:
    """Send a letter; the queue has limits."""
    sleep_a_little(number)
    return number


@app.workflow
def stocktaking(shelves: int) -> int:
    """Count many shelves at once."""
    return sum(gather(*(shelf.child(number) for number in range(shelves))))


@app.workflow
def shelf(number: int) -> int:
    """Count one."""
    sleep(1 + number % 3)
    return number


@app.schedule("every 1m", id="nightly-report")
@app.workflow
def report() -> str:
    """Write a report, every minute in this demo."""
    return "all is well"
