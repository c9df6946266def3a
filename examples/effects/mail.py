"""An e-mail: no server says whether it went out. After a crash the job is held, and a person is asked."""

from __future__ import annotations

import sys
from pathlib import Path

from tallystick import Key, Tally

app = Tally()
outbox = Path("mails.txt")  # what has left the house


@app.effect(key="mail:{order}", timeout="1s")  # no probe: nothing can be asked
def send_mail(key: Key, order: int) -> str:
    with outbox.open("a") as sent:
        sent.write(f"{key} about order {order}\n")
    return "sent"


@app.workflow(attempts=99)
def confirm(order: int) -> str:
    return send_mail(order)


if __name__ == "__main__":
    job = confirm.opts(idempotency_key="order-7").submit(7)
    with app.worker(lease="1s"):
        while (row := job.row()).hold is None and row.completed_at is None:
            app.runtime().pause(50)
        if row.hold is not None:
            sys.stderr.write(f"{row.hold_reason}\n")
            went_out = (
                outbox.exists() and "mail:7" in outbox.read_text()
            )  # the person looks at the server's log
            job.resolve(**({"happened": "sent"} if went_out else {"retry": True}), by="ann")
        print(job.result("60s"))

# Output:
# sent
