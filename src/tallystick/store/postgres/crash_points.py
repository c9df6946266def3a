"""The named places around every kind of write, at which a test may kill the process."""

from __future__ import annotations

from tallystick import crash
from tallystick.store.control import CONTROL_WORDS

AROUND = {
    kind: (
        crash.declare(f"postgres.{kind}.before", f"a batch is about to send its {what}"),
        crash.declare(f"postgres.{kind}.after", f"a batch has sent its {what} and has not committed"),
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
        "await": "waits",
        "deliver": "messages",
        "spawn": "children",
        "cycle": "turns",
        "cancel": "cancellations",
        "prune": "removed books",
        **CONTROL_WORDS,
    }.items()
}
