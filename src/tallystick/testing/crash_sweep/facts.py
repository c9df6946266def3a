"""What is right, written down once and without the engine: the oracle compares the books with this page."""

from __future__ import annotations

from typing import Final

LEASE_MS: Final = 300
QUEUES: Final = ("default", "bulk", "poison")

FINAL_STATES: Final = ("SUCCEEDED", "FAILED_FINAL", "CANCELLED")
LIVE_ATTEMPTS: Final = ("LEASED", "IN_PROGRESS")
COMMITTED_ATTEMPTS: Final = ("COMMITTED", "DONE")

# Digits of an inline step; of a start message before, during and after its job.
STEP_DIGITS: Final = "001111000000001"
QUEUED_DIGITS: Final = "000000000000000"
ENTERED_DIGITS: Final = "000000000000001"
CLOSED_DIGITS: Final = "000111100000001"

# Digits of the messages of a group: answered and counted down; the one that closed it has one more.
COUNTED_DIGITS: Final = "000011000000001"
CLOSER_DIGITS: Final = "000111000000001"
GROUP: Final = "group"
GROUP_MESSAGES: Final = 9

# How each workflow of the workload ends, and the effects (named like their tx) that it leaves, each once.
ENDINGS: Final[dict[str, tuple[str, str | None, tuple[str, ...]]]] = {
    "order": ("SUCCEEDED", None, ("reserve", "ship")),
    "receipt": ("SUCCEEDED", None, ("send_receipt",)),
    "crawl": ("SUCCEEDED", None, ("keep_page",)),
    "moody": ("SUCCEEDED", None, ("note_mood",)),
    "sluggish": ("SUCCEEDED", None, ("drag",)),
    "slow": ("SUCCEEDED", None, ()),
    "refused": ("FAILED_FINAL", "FATAL", ("note_refusal",)),
    "poison": ("FAILED_FINAL", "ATTEMPTS_SPENT", ()),
}
POISON_BUDGET: Final = 2

# A row that the user writes in the transaction that also submits: it is there exactly when the job is.
BOOKED: Final = "booked"
# The workflow `order` submits a receipt inside the transaction of this effect.
SHIPPED: Final = "ship"

EXIT_POISONED: Final = 70
EXIT_UNFINISHED: Final = 75
EXIT_BROKEN: Final = 76


def receipt_of(label: str) -> str:
    """Return the label of the receipt that an order submits while it ships."""
    return f"{label}.receipt"
