"""Where a batch may die: before and after each kind of write, with nothing of it durable."""

from __future__ import annotations

from tallystick import crash
from tallystick.store.control import CONTROL_WORDS

AROUND = {
    kind: (
        crash.declare(f"sqlite.{kind}.before", f"a batch is open and is about to write its {what}"),
        crash.declare(f"sqlite.{kind}.after", f"a batch has written its {what} and has not committed"),
    )
    for kind, what in {
        "renew": "renewed leases",
        "step": "steps",
        "event": "failed tries",
        "end_attempt": "released attempts",
        "end_job": "finished jobs",
        "submit": "submitted jobs",
        "claim": "claims",
        "count_down": "closed obligations",
        "tx": "user transactions",
        "await": "waits",
        "deliver": "messages",
        "spawn": "children",
        "cycle": "turns",
        "cancel": "cancellations",
        "prune": "removed books",
        "stale_report": "refused reports",
        **CONTROL_WORDS,
    }.items()
}
