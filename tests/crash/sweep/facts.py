"""What is right, written down once and without the engine: the oracle compares the books with this page."""

from __future__ import annotations

from typing import Final, NamedTuple

# A store that is far away gets longer leases, and is asked less often.
LEASE_MS: Final = {"sqlite": 300, "postgres": 1_000}
LOOK_SECONDS: Final = {"sqlite": 0.01, "postgres": 0.05}
LIMITED: Final = "bulk"
LIMITED_AT_ONCE: Final = 3
QUEUES: Final = ("default", LIMITED, "poison")
# The workflows whose jobs are in the queue with limits.
IN_LIMITED: Final = ("receipt", "crawl")

UNFINISHED_STATES: Final = ("QUEUED", "IN_PROGRESS", "CANCELLING")
FINAL_STATES: Final = ("SUCCEEDED", "FAILED_FINAL", "CANCELLED")
LIVE_ATTEMPTS: Final = ("LEASED", "IN_PROGRESS")
COMMITTED_ATTEMPTS: Final = ("COMMITTED", "DONE")

# Digits of an inline step, after the three that count its tries.
STEP_DIGITS: Final = "111000000001"
# The digits of a message before the eight that say which entry it was: it has entered, its answer is durable,
# its obligation is counted, and by that it closed its job or group.
ENTERED: Final = "0000000"
WORKED: Final = "0000100"
COUNTED: Final = "0000110"
CLOSER: Final = "0001111"
# The names of messages that enter the job itself.
AGAIN: Final = "again"
CANCEL: Final = "cancel"

# How each workflow of the workload ends, and the effects (named like their tx) that it leaves, each once.
ENDINGS: Final[dict[str, tuple[str, str | None, tuple[str, ...]]]] = {
    "order": ("SUCCEEDED", None, ("reserve", "ship")),
    "receipt": ("SUCCEEDED", None, ("send_receipt",)),
    "crawl": ("SUCCEEDED", None, ("keep_page",)),
    "moody": ("SUCCEEDED", None, ("note_mood",)),
    "sluggish": ("SUCCEEDED", None, ("drag",)),
    "slow": ("SUCCEEDED", None, ()),
    "refused": ("FAILED_FINAL", "FATAL", ("note_refusal",)),
    "tick": ("SUCCEEDED", None, ("note_tick",)),
    "poison": ("FAILED_FINAL", "ATTEMPTS_SPENT", ()),
    "approval": ("SUCCEEDED", None, ("approve",)),
    "family": ("SUCCEEDED", None, ("settle",)),
    "twins": ("SUCCEEDED", None, ("settle",)),
    "chore": ("SUCCEEDED", None, ("do_chore",)),
    "doze": ("SUCCEEDED", None, ("do_chore",)),
    "spoil": ("FAILED_FINAL", "FATAL", ("do_chore",)),
    "rounds": ("SUCCEEDED", None, ("note_turn", "note_turn@1", "note_turn@2")),
    "patient": ("CANCELLED", None, ("be_patient",)),
    "stubborn": ("CANCELLED", None, ()),
    "hasty": ("SUCCEEDED", None, ("hurry",)),
    "clan": ("CANCELLED", None, ()),
    "branch": ("CANCELLED", None, ()),
    "heir": ("CANCELLED", None, ()),
    "overtime": ("CANCELLED", "DEADLINE", ()),
    "nap": ("SUCCEEDED", None, ("rest",)),
    "brittle": ("FAILED_FINAL", "STEP_FAILED", ("brace",)),
    "brittle again": ("SUCCEEDED", None, ("brace", "mend")),
    "draft": ("SUCCEEDED", None, ("outline",)),
    "draft again": ("SUCCEEDED", None, ("outline",)),
}
# A workflow that nobody submits: its job is the one tick of a schedule, which is acknowledged in its place.
TICK: Final = "tick"
TICK_MS: Final = 150
PLANNED: Final = "schedule"
# A workflow that nobody runs: it is cancelled and removed; nothing of it may be left, nor a part of it go.
FLEETING: Final = "fleeting"
FLEETING_JOBS: Final = 5
# A workflow that may just as well have been cancelled, whatever it had done by then.
OR_CANCELLED: Final = ("hasty",)
POISON_BUDGET: Final = 2

# A row that the user writes in the transaction that also submits: it is there exactly when the job is.
BOOKED: Final = "booked"
# The workflow `order` submits a receipt inside the transaction of this effect.
SHIPPED: Final = "ship"


class Signal(NamedTuple):
    """What somebody outside sends: at once, or when the workflow says that it has come to a place."""

    id: str
    name: str
    value: str
    when: str = ""


SIGNALS: Final[dict[str, tuple[Signal, ...]]] = {
    "approval": (
        Signal("1", "early", "e"),
        Signal("2", "late", "l", "late"),
        Signal("3", "somebody", "s", "somebody"),
    ),
    "rounds": (
        Signal("1", "round", "one"),
        Signal("2", "round", "two"),
        Signal("3", "round", "three", "last turn"),
    ),
    "patient": (Signal("1", "unread", "u"),),
    # Not before it was paused and resumed, or it might be over by then.
    "nap": (Signal("1", "wake", "w", "rested"),),
    "draft": (Signal("1", "word", "w"),),
}
# Which workflows are cancelled, and when; what a stubborn one does before it ends, if it ends by itself.
CANCELLED: Final = {"patient": "waiting", "stubborn": "ticking", "hasty": "leaving", "clan": "gathered"}
CLEAN_UP: Final = "clean_up"
# How a sending is noted that is a cancellation, and one that came after the end of its job.
CANCEL_ID: Final = "cancel"
DROPPED: Final = "DROPPED"

# How those sendings are noted that hold a job, let it go on, and begin a new one; and when.
PAUSE_ID: Final = "pause"
RESUME_ID: Final = "resume"
RETRY_ID: Final = "retry"
FORK_ID: Final = "fork"
CONTROL_IDS: Final = (PAUSE_ID, RESUME_ID, RETRY_ID, FORK_ID)
NAPPING: Final = "napping"
RESTED: Final = "rested"
MENDED: Final = "mended"
TWICE: Final = "retried-twice"
# The workflow whose jobs are retried, under a key that goes with them.
RETRIED: Final = "brittle"

# What each of them returns when it is told all that; how many of the children of a group must have ended.
RESULTS: Final = {"approval": "e l None s", "rounds": "one two three"}
TURNS: Final = 3
ENOUGH: Final = 2

EXIT_POISONED: Final = 70
EXIT_UNFINISHED: Final = 75
EXIT_BROKEN: Final = 76


def receipt_of(label: str) -> str:
    """Return the label of the receipt that an order submits while it ships."""
    return f"{label}.receipt"
