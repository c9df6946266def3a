"""The named places around every kind of write, at which a test may kill the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick import crash

EFFECTS: Final = {
    "intent": "intents of effects",
    "result": "what came of effects",
    "rest": "effects that did nothing",
    "doubt": "effects in doubt",
    "probe": "rights to ask a probe",
    "settle": "answers about effects",
}
"""What concerns effects; `tests/crash/effects` kills around these."""

WRITES: Final = {
    "renew": "renewed leases",
    "step": "steps",
    "event": "failed tries",
    "value": "values that jobs show",
    "end_attempt": "released attempts",
    "end_job": "finished jobs",
    "reclaim": "reclaimed jobs",
    "submit": "submitted jobs",
    "claim": "claims",
    "await": "waits",
    "take": "answers that the claim brought",
    "deliver": "messages",
    "spawn": "children",
    "cycle": "turns",
    "cancel": "cancellations",
    "prune": "removed books",
    "trim": "trimmed turns",
    "hold": "holds",
    "resume": "resumptions",
    "fork": "forks",
    "hook": "hooks",
    "schedule": "schedules",
    "queue": "limits of queues",
    "key": "keys that change hands",
    "worker": "reports of workers",
    "act": "acts of people",
    **EFFECTS,
}


def around(store: str, writes: Mapping[str, str], before: str, after: str) -> dict[str, tuple[str, str]]:
    """Declare the points before and after each kind of write; the sentences say `{what}` is written."""
    return {
        kind: (
            crash.declare(f"{store}.{kind}.before", before.format(what=what)),
            crash.declare(f"{store}.{kind}.after", after.format(what=what)),
        )
        for kind, what in writes.items()
    }
