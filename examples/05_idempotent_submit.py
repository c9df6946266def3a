"""Submitting twice: a new job without a key, the same job with one, an error for other content.

A web handler that is called twice, or a queue that delivers twice, needs no table of its own.
"""

from __future__ import annotations

from tallystick import Tally
from tallystick.errors import IdempotencyConflict

app = Tally("sqlite:///example-05.db")


@app.workflow
def invoice(order: int, cents: int) -> str:
    return f"order {order}: {cents / 100:.2f}"


@app.workflow(idempotent=True)  # the content itself is the key
def thumbnail(file: str) -> str:
    return f"small-{file}"


if __name__ == "__main__":
    first, second = invoice.submit(1, 995), invoice.submit(1, 995)
    print("without a key: same job?", first.id == second.id)

    once = invoice.opts(idempotency_key="invoice-1")
    first, second = once.submit(1, 995), once.submit(order=1, cents=995)  # bound by name, so these are equal
    print("with a key:    same job?", first.id == second.id, "- created:", first.created, second.created)

    try:
        once.submit(1, 1_095)
    except IdempotencyConflict as conflict:
        print("other content:", conflict.code, "- both hashes are named:", end=" ")
        print(conflict.fields["existing_hash"] != conflict.fields["submitted_hash"])

    first, second = thumbnail.submit("cat.png"), thumbnail.submit("cat.png")
    print("by content:    same job?", first.id == second.id)
    app.close()

# Output:
# without a key: same job? False
# with a key:    same job? True - created: True False
# other content: IDEMPOTENCY_CONFLICT - both hashes are named: True
# by content:    same job? True
