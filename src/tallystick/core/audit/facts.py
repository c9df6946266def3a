"""The facts of a job, folded as they come: its chain, its moves, its digits, and where they say it stands."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import msgspec

from tallystick.core.audit.book import AttemptRow, Book, Findings
from tallystick.core.audit.removals import PrunedRow
from tallystick.core.audit.step_fact import LEARNING
from tallystick.core.audit.told import Account
from tallystick.core.chain import GENESIS, StepFact, event_hash, read_step_payload
from tallystick.core.digits import ActivityLedger
from tallystick.core.ledger.consistency import contradictions
from tallystick.core.ledger.marks import recorded
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState, StepState
from tallystick.core.machine import Machine
from tallystick.core.pictures import Place
from tallystick.core.remote.answers import answer_text
from tallystick.core.values import StoredEvent
from tallystick.errors import LedgerCorrupt

INLINE: Final = frozenset({"step", "tx"})
_STEPS: Final = INLINE | LEARNING
_ASKED: Final = (JobState.CANCELLING, JobState.CANCELLED)
_LISTED: Final = {
    machine.name: frozenset((move.source.value, move.target.value) for move in machine.transitions)
    for machine in (JOB, ATTEMPT)
}


class History:
    """Where the chain of one job stands, and what its facts say happened.

    Of inline steps nothing is kept, so a history of any length takes no more memory than a short one;
    of waits and groups their digits are, because their rows may have learnt two since.
    """

    def __init__(self, book: Book, findings: Findings, removal: PrunedRow | None = None) -> None:
        """Begin before the first fact, or behind the turns whose removal the log names."""
        self._book = book
        self._findings = findings
        self._removal = removal
        self.n = self._gone = 0
        self.attempts: dict[int, str] = {}
        self.told: dict[Place, int] = {}
        self.said = Account(0 if removal is None else removal.dimension + 1)
        self._dimension = self.said.turns_gone
        self._tries: dict[tuple[object, object], int] = {}
        self._head = GENESIS
        self._head_met = book.head_n == 0 and not book.ledger_form
        self._state = ""
        if removal is not None:
            self.n = self._gone = removal.last_n
            self._head = _unhex(removal.head_hash)
            # Only a job that is under way turns.
            self._state = JobState.IN_PROGRESS.value

    @property
    def facts(self) -> int:
        """Return how many facts were read."""
        return self.n - self._gone

    def read(self, fact: StoredEvent) -> None:
        """Take the next fact."""
        self._link(fact)
        try:
            step = read_step_payload(fact.payload) if fact.type in _STEPS else None
            data = {} if step is not None else msgspec.json.decode(fact.payload, type=dict[str, object])
        except (msgspec.DecodeError, ValueError):
            self._findings.note("chain", f"fact {fact.n} ({fact.type}) cannot be read")
            return
        if step is not None:
            self._step(fact, step)
            return
        self.said.read(fact, data, self._dimension)
        match fact.type:
            case "try":
                place = (data.get("step"), data.get("occurrence"))
                self._tries[place] = self._tries.get(place, 0) + 1
            case "again":
                self._dimension += 1
                self._tries.clear()
            case _:
                pass
        for path, machine in ((data.get("job"), JOB), (data.get("attempt"), ATTEMPT)):
            if path is not None:
                self._move(fact, str(path).split(">"), machine)

    def close(self, attempts: list[AttemptRow]) -> None:
        """Compare the end of the history with the rows of the job and of its attempts."""
        book, note = self._book, self._findings.note
        final = JobState(book.state) in JOB.final
        behind = book.head_n != self.n if final else book.ledger_form and book.head_n < self.said.moved_n
        if not self._head_met or behind:
            note("chain", f"the job says its history ends with fact {book.head_n}, and it has {self.n}")
        # The wish to end is on the row alone while an attempt runs, or while a child that no worker has is to
        # be ended with its parent; the fact that ends the job tells of both.
        asked = book.state == JobState.CANCELLING and self._state in (JobState.QUEUED, JobState.IN_PROGRESS)
        if self._state != book.state and not (asked and book.cancel_at is not None):
            note("state", f"the facts end in {self._state or 'nothing'}, the job says {book.state}")
        if book.ledger_form and book.cancel_at is not None and book.state not in _ASKED:
            note("state", f"the job was asked to end, and says {book.state}")
        if self._dimension != book.dimension:
            note("state", f"the facts tell of {self._dimension} turns, the job says {book.dimension}")
        gone = self.said.attempts_gone
        counted = list(range(gone + 1, gone + len(attempts) + 1))
        if [row.attempt for row in attempts] != counted or book.attempt != gone + len(attempts):
            trimmed = f", {gone} of them trimmed" if gone else ""
            note(
                "attempts", f"the job counts {book.attempt} attempts{trimmed}, there are {len(attempts)} rows"
            )
        self._judge_removal()
        for row in attempts:
            told = self.attempts.get(row.attempt)
            if told != row.status:
                said = told or "nothing of it"
                note("attempts", f"attempt {row.attempt} is {row.status}, the facts say {said}")

    def _judge_removal(self) -> None:
        """Compare the newest trimming as the log of removals names it with the fact that tells of it."""
        line, told = self._removal, self.said.trimmed
        logged = None if line is None else (line.dimension + 1, line.last_n, line.head_hash)
        said = None if told is None else (told.turns, told.last_n, told.head)
        if logged != said:
            turns = 0 if logged is None else logged[0]
            self._findings.note(
                "removals", f"the log says that {turns} turns are trimmed, the facts otherwise"
            )

    def _link(self, fact: StoredEvent) -> None:
        note = self._findings.note
        if fact.n != self.n + 1:
            note("chain", f"fact {self.n + 1} is missing")
        elif fact.prev_hash != self._head:
            note("chain", f"fact {fact.n} does not follow the one before it")
        made = event_hash(fact.prev_hash, fact.job_id, fact.n, fact.type, fact.at, fact.attempt, fact.payload)
        if made != fact.event_hash:
            note("chain", f"{_named(fact)} was changed after it was written")
        self.n, self._head = fact.n, fact.event_hash
        if fact.n == self._book.head_n:
            self._head_met = fact.event_hash == self._book.head_hash

    def _step(self, fact: StoredEvent, step: StepFact) -> None:
        label, note = f"{fact.type} {step.name}#{step.occurrence}", self._findings.note
        try:
            ledger = ActivityLedger(step.ledger)
        except LedgerCorrupt as error:
            note("digits", f"{label}: {error.message}")
            return
        for contradiction in contradictions(ledger):
            note("digits", f"{label}: {ledger.text}: {contradiction}")
        place = (self._dimension, step.name, step.occurrence)
        if fact.type in INLINE:
            self._inline(label, fact, step, ledger)
        else:
            self.told[place] = step.ledger
            self.said.results[place] = hash(step.result if step.error is None else step.error)
            if fact.type == "effect":
                self.said.answers[place] = hash(answer_text(step.result, step.error, step.row))
        if (step.result is None) == (step.error is None) or (step.state == StepState.SUCCEEDED) != (
            step.error is None
        ):
            note("state", f"{label} is {step.state} and its result or error says otherwise")

    def _inline(self, label: str, fact: StoredEvent, step: StepFact, ledger: ActivityLedger) -> None:
        """Judge an inline step: it counts its failed tries, and is complete; a copy may be of any form."""
        note = self._findings.note
        if not ledger.get("children_spawned"):
            note("digits", f"{label} is recorded and {ledger.text} says it is not complete")
        failures = self._tries.pop((step.name, step.occurrence), 0)
        is_copy = self.said.is_fork and fact.attempt == 0
        if self._book.ledger_form and not is_copy and ledger != recorded(failures + 1):
            note("digits", f"{label}: {ledger.text} after {failures} failed tries")

    def _move(
        self, fact: StoredEvent, path: list[str], machine: Machine[JobState] | Machine[AttemptState]
    ) -> None:
        """Follow the moves that a fact names, each of which the machine must list."""
        is_job, note = machine is JOB, self._findings.note
        before = self._state if is_job else self.attempts.get(fact.attempt, "")
        if path[0] != (before or machine.start.value):
            note("state", f"fact {fact.n} moves the {machine.name} from {path[0]}, it was {before or 'new'}")
        for move in pairwise(path):
            if move not in _LISTED[machine.name]:
                note("state", f"fact {fact.n}: no {machine.name} may move from {move[0]} to {move[1]}")
        if is_job:
            self._state = path[-1]
        else:
            self.attempts[fact.attempt] = path[-1]


def _unhex(text: str) -> bytes:
    """Return the bytes of a hash; none if that is no such text, which the chain of the log shows."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return GENESIS


def _named(fact: StoredEvent) -> str:
    """Return the name of a fact: its place, and the step whose row it is."""
    parts = fact.payload.split("\0")
    step = f" {parts[0]}#{parts[1]}" if len(parts) > 1 else ""
    return f"fact {fact.n} ({fact.type}{step})"
