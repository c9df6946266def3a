"""Waiting for a person, with a timeout: the job holds no thread and no lease until a person answers.

A signal that is sent early waits for the job, and one that is sent twice with the same id arrives once.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallystick import Tally, wait

app = Tally("sqlite:///example-09.db")


@dataclass
class Decision:
    by: str
    approved: bool


@app.step
def ask(order: int) -> str:
    return f"letter about order {order}"  # a service that sends one


@app.workflow
def purchase(order: int, patience: str) -> str:
    ask(order)
    decision = wait("decision", Decision, timeout=patience)
    if decision is None:
        return f"order {order}: nobody answered"
    return f"order {order}: {'bought' if decision.approved else 'declined'} by {decision.by}"


if __name__ == "__main__":
    early = purchase.submit(1, "2d")
    print("sent before the job has begun:", early.send("decision", Decision("Ada", approved=True)).name)

    twice = purchase.submit(2, "2d")
    for _ in range(2):  # a web form that is submitted twice
        sent = twice.send("decision", Decision("Grace", approved=False), id="form-77")
        print("sent with an id:", sent.name)

    with app.worker(concurrency=1):
        print(early.result("10s"))
        print(twice.result("10s"))
        print(purchase.submit(3, "200ms").result("10s"))
    app.close()

# Output:
# sent before the job has begun: KEPT
# sent with an id: KEPT
# sent with an id: KNOWN
# order 1: bought by Ada
# order 2: declined by Grace
# order 3: nobody answered
