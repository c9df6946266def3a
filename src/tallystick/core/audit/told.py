"""What the facts of a job say about columns of its rows, gathered as they are read."""

from __future__ import annotations

from bisect import bisect_left
from itertools import zip_longest
from typing import Final, NamedTuple

import msgspec

from tallystick.core.audit.fingerprints import AT_BIRTH, BORN, DROPPED, ENDED, TURNED, WAS, of_dropped
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.effects.judging import ToldEffects
from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.pictures import Place
from tallystick.core.queues.judging import UNTOLD, next_due
from tallystick.core.queues.reusing import NEW_HASH, REPLACE, WAS_HASH
from tallystick.core.remote.row_prints import DIRECTIVES, ROWS
from tallystick.core.values import StoredEvent
from tallystick.core.verbs.trimming import TRIM, Trimmed

_ABORTED: Final = ">ABORTED"
# Why an attempt has ended, where the kind of the fact says it.
_REASONS: Final = {
    "suspend": AbortReason.SUSPENDED,
    "again": AbortReason.SUSPENDED,
    "hold": AbortReason.HELD,
    "cancel": AbortReason.CANCELLED,
}
# Facts with which step 2 of the message is done that drove the attempt.
_SETTLES: Final = ("suspend", "again")
# Facts beside which nothing of the row of a job is written.
_BESIDE: Final = frozenset({"try", "note", "intent", "call", TRIM})


class Began(NamedTuple):
    """What a claim says; older ones name no lease."""

    at: int
    lease_id: str | None
    owner: str | None
    # Whether the job was born with this claim.
    at_birth: bool


class AwaitedAs(NamedTuple):
    """The first attempt that has waited for something, and what that was; None: of an older form."""

    attempt: int
    kind: str | None


class Account:
    """What is remembered of the facts of a job: by attempt, by wait, and of birth and end."""

    def __init__(self, turns_gone: int = 0) -> None:
        """Begin before the first fact that is there; so many turns before it were trimmed."""
        self.turns_gone = turns_gone
        # What the newest trimming says of them.
        self.trimmed: Trimmed | None = None
        self.is_claimed = turns_gone > 0
        self.is_fork = False
        self.first: StoredEvent | None = None
        self.born: dict[str, object] = {}
        self.given: object = None
        self.payload: object = None
        # The content hashes of a job whose arguments were replaced, at birth and now.
        self.hashes: tuple[object, object] | None = None
        self.ended: object = None
        # Kind and reason of the hold that the facts have left; None if they do not tell.
        self.hold: tuple[object, object] | None = (None, None)
        self.began: dict[int, Began] = {}
        # Reason and charge of attempts that have ended; None for a reason that an older fact does not name.
        self.aborted: dict[int, tuple[str | None, bool | None]] = {}
        # By which kind of fact.
        self.ended_by: dict[int, str] = {}
        # When the job is due, as far as its facts tell.
        self.due = UNTOLD
        # The newest fact that was written with the row of the job.
        self.moved_n = 0
        # By turn what was dropped when it was over, unless the fact is of an older form.
        self.dropped: dict[int, object] = {}
        # What segments have waited for, by turn and name: the first attempt to, and as what, if that is told.
        self.waits: dict[tuple[int, str], AwaitedAs] = {}
        self.timed: set[tuple[int, str]] = set()
        self.turns: list[int] = []
        # The attempt that has ended each turn that is there.
        self.turned_by: dict[int, int] = {}
        self.results: dict[Place, int] = {}
        # Of effects what their messages must say, word by word.
        self.answers: dict[Place, int] = {}
        # Of a protocol job: its rows and directives as the newest fact about each says.
        self.rows: object = None
        self.directives: dict[str, object] = {}
        self.effects = ToldEffects()

    def read(self, fact: StoredEvent, data: dict[str, object], dimension: int) -> None:
        """Take a fact that is not a step."""
        if self.first is None and not self.turns_gone:
            self.first, self.born = fact, data
            self.is_fork = fact.type == "fork"
        self._take(fact, data, dimension)
        self.effects.read(fact, data)
        self.due = next_due(self.due, fact, data, dimension)
        # Of a protocol job some are about a step alone.
        if fact.type not in _BESIDE and ("job" in data or "steps" not in data):
            self.moved_n = fact.n
        if str(data.get("attempt", "")).endswith(_ABORTED):
            self.aborted[fact.attempt] = _aborted(fact.type, data)
            self.ended_by[fact.attempt] = fact.type
        if ENDED in data or WAS in data:
            self.dropped[dimension] = data.get(DROPPED, of_dropped(()))
        self.ended = data.get(ENDED, self.ended)
        self.rows = data.get(ROWS, self.rows)
        directives = data.get(DIRECTIVES)
        if isinstance(directives, dict):
            self.directives.update(directives)

    def _take(self, fact: StoredEvent, data: dict[str, object], dimension: int) -> None:
        """Take what facts of this type say."""
        if fact.type == "claim":
            self.is_claimed = True
            self.began[fact.attempt] = Began(
                fact.at, _text(data, "lease"), _text(data, "by"), data.get(AT_BIRTH) is True
            )
            # A job that is asked to stop while it runs is held, and its worker may be lost before it says so.
            self.hold = None
        elif fact.type == "suspend":
            kinds = str(data["as"]).split(", ") if "as" in data else ()
            for name, kind in zip_longest(str(data.get("for", "")).split(", "), kinds):
                self.waits.setdefault((dimension, name), AwaitedAs(fact.attempt, kind))
            self.timed.update((dimension, name) for name in str(data.get("timed", "")).split(", ") if name)
        elif fact.type == "hold":
            # A job that stops because of a hold sets none, and gives no reason: it may be over by then.
            self.hold = (data.get("hold"), data.get("why")) if "why" in data else None
        elif fact.type == "resume" or "frees" in data:
            self.hold = (None, None)
        elif fact.type == REPLACE:
            if self.hashes is None:
                self.given, self.hashes = data.get(WAS), (data.get(WAS_HASH), None)
            self.payload, self.hashes = data.get(TURNED), (self.hashes[0], data.get(NEW_HASH))
        elif fact.type == "again":
            replaced = self.turns or self.turns_gone or self.hashes is not None
            self.given = self.given if replaced else data.get(WAS)
            self.payload = data.get(TURNED)
            self.turns.append(fact.n)
            self.turned_by[dimension] = fact.attempt
        elif fact.type == TRIM:
            self._trim(fact, data)

    def _trim(self, fact: StoredEvent, data: dict[str, object]) -> None:
        """Take what a trimming says of the turns that it removed; the first fact of the job was in them."""
        try:
            told = msgspec.convert(data, Trimmed)
        except msgspec.ValidationError:
            return
        self.trimmed, self.given, self.born = told, told.given, told.first.said
        self.is_fork = told.first.type == "fork"
        text = msgspec.json.encode(told.first.said).decode()
        self.first = fact._replace(n=1, type=told.first.type, at=told.first.at, attempt=0, payload=text)

    def dimension_of(self, n: int) -> int:
        """Return the turn in which a fact stands."""
        return self.turns_gone + bisect_left(self.turns, n)

    def settles(self, attempt: int) -> bool:
        """Tell whether an attempt has ended by itself: what drove it is done with, if it was taken."""
        return self.ended_by.get(attempt) in _SETTLES

    @property
    def has_turned(self) -> bool:
        """Tell whether the job has other arguments than it was born with."""
        return self.turns_gone > 0 or bool(self.turns) or self.hashes is not None

    @property
    def attempts_gone(self) -> int:
        """Return how many attempts were in the turns that were trimmed."""
        return 0 if self.trimmed is None or not self.turns_gone else self.trimmed.attempts

    @property
    def birth_print(self) -> object:
        """Return what the first fact says was submitted; None if it is of an older form."""
        return self.born.get(BORN)


def _aborted(kind: str, data: dict[str, object]) -> tuple[str | None, bool | None]:
    """Return why an attempt has ended, and whether it is charged, as its fact says."""
    if kind in _REASONS:
        return _REASONS[kind], False
    reason = _text(data, "reason")
    if kind == "reclaim":
        verdict = data.get("verdict")
        if verdict == Reclaim.SETTLE.name:
            return AbortReason.CANCELLED, False
        return reason, verdict == Reclaim.FAIL.name or reason == AbortReason.EXPIRED
    charged = data.get("charged")
    return reason, charged if isinstance(charged, bool) else None


def _text(data: dict[str, object], name: str) -> str | None:
    value = data.get(name)
    return value if isinstance(value, str) else None
