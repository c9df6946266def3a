"""Statements that change one row, what makes each of them find it, and what must not.

The books: job `j` runs in its second attempt under lease `l`; it has an open wait, a signal that nobody
took, a timer that lost, a message whose work is durable, one that is counted, and one that closed. Job
`over` has ended.
"""

from __future__ import annotations

from typing import NamedTuple

from tallystick.testing.conformance.subject import Subject

WORK, COUNTED, CLOSED = 10**10, 10**9, 10**11


class Guard(NamedTuple):
    """The parameters that change one row, and those of strays, each wrong in one place."""

    right: tuple[object, ...]
    strays: tuple[tuple[object, ...], ...]


GUARDS = {
    "drop_activities": Guard(("j", 2, 9), (("j", 1, 9), ("j", 3, 9), ("over", 1, 9))),
    "drop_messages": Guard(("j", 2, "", 9, 0), (("j", 1, "", 9, 0), ("over", 1, "", 9, 0))),
    "acknowledge": Guard(("counted", "j", 9), (("worked", "j", 9), ("counted", "over", 9))),
    "acknowledge_loser": Guard(("timer", "j", 9), (("signal", "j", 9), ("timer", "over", 9))),
    "mark_work": Guard(("signal", "j"), (("worked", "j"), ("signal", "over"), ("late", "over"))),
    "mark_tasks": Guard(("closer", "j", 9), (("counted", "j", 9), ("closer", "over", 9))),
    "abort_attempt": Guard(("j", 2, "l", 9), (("j", 1, "l", 9), ("j", 2, "m", 9), ("over", 1, "l", 9))),
    "request_cancel": Guard(("j", 2, 9, 9), (("j", 1, 9, 9), ("over", 1, 9, 9))),
}


def plant(subject: Subject) -> None:
    """Write the books."""
    about = {"handler": "pay", "payload": "{}", "created_at": 1, "updated_at": 1}
    subject.plant("jobs", job_id="j", state="IN_PROGRESS", attempt=2, semaphore=3, **about)
    subject.plant("jobs", job_id="over", state="IN_PROGRESS", attempt=1, semaphore=3, **about)
    lease = {"lease_epoch": "e", "lease_expires_at": 1, "lease_owner": "w"}
    subject.plant("attempts", job_id="j", attempt=1, status="ABORTED", reason="ERROR", lease_id="l", **lease)
    subject.plant("attempts", job_id="j", attempt=2, status="IN_PROGRESS", lease_id="l", **lease)
    subject.plant(
        "attempts", job_id="over", attempt=1, status="ABORTED", reason="FATAL", lease_id="l", **lease
    )
    for job_id in ("j", "over"):
        step = {"kind": "wait", "state": "IN_PROGRESS", "created_at": 1}
        subject.plant("steps", job_id=job_id, name="go", occurrence=1, **step)
    for guid, kind, ledger in (
        ("signal", "signal", 0),
        ("timer", "timer", 0),
        ("worked", "signal", 1 + WORK),
        ("counted", "signal", 1 + WORK + COUNTED),
        ("closer", "signal", 1 + WORK + COUNTED + CLOSED),
    ):
        row = {"name": "go", "occurrence": 1, "kind": kind, "ledger": ledger, "created_at": 1}
        subject.plant("messages", guid=guid, job_id="j", **row)
    row = {"name": "go", "occurrence": 1, "kind": "timer", "created_at": 1}
    subject.plant("messages", guid="late", job_id="over", acked_at=2, **row)
    subject.plant("messages", guid="unread", job_id="over", **row)
