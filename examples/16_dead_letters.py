"""Dead letters: a job that failed is retried from the step it failed with, and any job can be forked."""

from __future__ import annotations

from contextlib import suppress

from tallystick import Fatal, JobFailed, Tally

app = Tally("sqlite:///example-16.db")
bank_is_open: list[bool] = []


@app.step
def quote(order: int) -> int:
    print(f"  asking for the price of {order}", flush=True)
    return order * 10


@app.step
def charge(cents: int) -> str:
    if not bank_is_open:
        raise Fatal("the bank is closed")
    return f"charged {cents}"


@app.workflow
def checkout(order: int) -> str:
    return charge(quote(order))


if __name__ == "__main__":
    with app.worker():
        job = checkout.opts(idempotency_key="order-42").submit(42)
        with suppress(JobFailed):
            job.result("10s")
        (dead,) = app.dead(workflow="checkout")
        print("dead:", dead.row().error_message)

        bank_is_open.append(True)
        retry = dead.retry()  # keeps the price; only the charge is done again
        print(retry.result("10s"))
        print("said twice, it is the same job:", dead.retry().id == retry.id, dead.retry().created)
        print("and the key is its own:", checkout.opts(idempotency_key="order-42").submit(42).id == retry.id)
        print("dead letters left:", len(app.dead()))

        other = retry.fork(at="quote")  # a new job from any step; the old one stays as it is
        print(other.result("10s"))

# Output:
#   asking for the price of 42
# dead: charge failed after 1 try: Fatal: the bank is closed
# charged 420
# said twice, it is the same job: True False
# and the key is its own: True
# dead letters left: 0
#   asking for the price of 42
# charged 420
