"""A job inside your own transaction: your row and the job become durable together, or neither does.

So there is no order without its job and no job without its order, and no outbox table to write.
"""

from __future__ import annotations

from tallystick import Job, Tally, Tx

app = Tally("sqlite:///example-07.db")


@app.tx
def mark_paid(db: Tx, order: int) -> str:
    db.execute("UPDATE orders SET state = 'paid' WHERE id = ?", [order])
    # The same from inside a workflow: this job exists exactly if the order is marked.
    return thank.opts(within=db).submit(order).id


@app.workflow
def pay(order: int) -> str:
    return mark_paid(order)


@app.workflow
def thank(order: int) -> str:
    return f"thank you for order {order}"


def place(order: int, *, fail: bool = False) -> Job[str]:
    with app.transaction() as db:
        db.execute("INSERT INTO orders VALUES (?, 'new')", [order])
        job = pay.opts(within=db).submit(order)
        if fail:
            raise ValueError("the customer closed the page")
    return job


if __name__ == "__main__":
    with app.transaction() as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")
    job = place(1)
    try:
        place(2, fail=True)
    except ValueError as error:
        print("rolled back:", error)
    with app.worker():
        print(app.job(job.result("10s")).result("10s"))
    with app.transaction() as db:
        print("orders:", db.execute("SELECT * FROM orders"))
        print("jobs:  ", db.execute("SELECT handler, payload FROM jobs ORDER BY handler"))
    app.close()

# Output:
# rolled back: the customer closed the page
# thank you for order 1
# orders: [(1, 'paid')]
# jobs:   [('pay', '{"order":1}'), ('thank', '{"order":1}')]
