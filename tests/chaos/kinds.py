"""What users may expect of each kind of work: how it ends, which rows it leaves, what it returns.

These are facts about the program in `work.py`, written down a second time and not computed from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TOKEN = r"[0-9a-f]{32}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of work, as its user sees it."""

    # Which workflow is submitted, and how often this kind is chosen.
    workflow: str
    weight: int = 2
    # How it may end.
    states: tuple[str, ...] = ("SUCCEEDED",)
    # Rows of its own that are there once when it has succeeded, and rows of jobs that it started.
    effects: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    # Rows of jobs that it submitted and does not wait for; they are there when the run is over.
    later: tuple[tuple[str, str], ...] = ()
    # What follows the token in the result.
    rest: str = ""
    # What its client does after the submission.
    signals: tuple[str, ...] = ()
    cancels: bool = False
    retries: bool = False
    forks: bool = False
    booked: bool = False
    # Whose books outside know what it did: the bank's, or those of the remote services.
    bank: str = ""
    services: tuple[str, ...] = ()
    # A person has to say what came of its call, if that is not known.
    needs_person: bool = False
    # It is a command for a protocol: it draws nothing, and returns what the last service gave.
    is_protocol: bool = False

    def fits(self, label: str, result: str) -> bool:
        """Tell whether this is a result that such a job may have."""
        return re.fullmatch(TOKEN + self.rest.replace("SAID", re.escape(f"said-{label}")), result) is not None


_RECEIPT = (("/receipt", "receipt"),)
_LINES = tuple(f"line{number}" for number in range(10))
_CHORES = tuple((f"/{name}", "chore") for name in "abcd")

KINDS: dict[str, Kind] = {
    "order": Kind(workflow="order", weight=4, effects=("reserve", "ship"), later=_RECEIPT),
    "booking": Kind(
        workflow="order", weight=4, effects=("booked", "reserve", "ship"), later=_RECEIPT, booked=True
    ),
    "crawl": Kind(workflow="crawl", weight=4, effects=("page",)),
    "approval": Kind(workflow="approval", weight=3, effects=("approve",), signals=("go",), rest=":SAID:None"),
    "parley": Kind(
        workflow="parley",
        weight=3,
        effects=("approve",),
        signals=("go", "maybe"),
        rest=":SAID:(None|SAID)",
    ),
    "family": Kind(workflow="family", effects=("settle",), others=_CHORES, rest=":1"),
    "twins": Kind(workflow="twins", effects=("settle",), others=_CHORES, rest=":1"),
    "rounds": Kind(workflow="rounds", effects=("turn1", "turn2", "turn3")),
    "moody": Kind(workflow="moody", effects=("mood",)),
    "doomed": Kind(workflow="doomed", states=("FAILED_FINAL",), effects=("brace", "mend"), retries=True),
    "draft": Kind(workflow="draft", effects=("outline",), rest=f":{TOKEN}", forks=True),
    "patient": Kind(workflow="patient", states=("CANCELLED",), effects=("patience",), cancels=True),
    "hasty": Kind(workflow="hasty", states=("SUCCEEDED", "CANCELLED"), effects=("hurry",), cancels=True),
    "serial": Kind(workflow="serial", weight=4, effects=_LINES),
    "stream": Kind(workflow="stream", weight=4, effects=_LINES),
    "slow": Kind(workflow="slow", weight=1, effects=("late",)),
    "payment": Kind(workflow="payment", weight=3, effects=("paid",), rest=f":{TOKEN}", bank="charge"),
    "transfer": Kind(workflow="transfer", weight=3, effects=("paid",), rest=f":{TOKEN}", bank="send"),
    "pledge": Kind(workflow="pledge", effects=("paid",), rest=f":{TOKEN}", bank="swear", needs_person=True),
    "parcel": Kind(workflow="parcel", weight=3, effects=("parcel",), rest=f":{TOKEN}", services=("pick",)),
    "caravan": Kind(workflow="caravan", weight=3, effects=("parcel",), rest=f":{TOKEN}", services=("pick",)),
    "scan": Kind(workflow="", weight=3, services=("read", "print"), is_protocol=True),
    "seat": Kind(workflow="seat", weight=4, effects=("sat",)),
}
