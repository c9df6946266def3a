"""The columns of messages: the name says for which job, and what was taken is the result of a wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tallystick.core.audit.book import AttemptRow, Book, Findings
from tallystick.core.audit.told import Account
from tallystick.core.effects.rows import FIRST, exec_id_of, taken_from
from tallystick.core.pictures import (
    AGAIN,
    START,
    Message,
    cancel_of,
    is_of_sender,
    join_of,
    timer_of,
    turn_of,
)
from tallystick.core.remote.answers import ended
from tallystick.core.remote.rows import result_guid, step_id_of
from tallystick.core.values import Group

_KINDS: Final = frozenset({"signal", "timer", "child", "result", "resume"})
_INDEX_DIGITS: Final = 8
# Messages that carry something; the others say nothing, or a state.
_SPEAK: Final = ("signal", "result")


def _name_of_result(job_id: str, message: Message) -> str:
    """Return what a message must be called that tells how a remote step or an effect has ended."""
    unit = step_id_of((message.dimension, message.name, message.occurrence or 0))
    exec_id = exec_id_of(job_id, unit, FIRST)
    first = result_guid(job_id, unit, 0)[:-1]
    known = message.guid in (exec_id, taken_from(exec_id)) or message.guid.startswith(first)
    return message.guid if known else first


class Letters:
    """The messages of one job, taken one by one."""

    def __init__(self, book: Book, said: Account, attempts: Sequence[AttemptRow], findings: Findings) -> None:
        """Begin with what drove the attempts of the job."""
        self._book, self._said, self._note = book, said, findings.note
        self._drove = Counter(row.guid for row in attempts)
        timers = (f"{book.job_id}:{dimension}:{name}:timer" for dimension, name in said.timed)
        self._unheard = {*(row.guid for row in attempts), *timers} - {START, ""}

    def take(self, message: Message) -> None:
        """Judge a message by its name, its kind, and what it is said to have brought."""
        label = f"{message.kind} {message.guid}"
        self._unheard.discard(message.guid)
        if not self._book.ledger_form:
            return
        if message.kind not in _KINDS:
            self._note("messages", f"{message.guid} is of no kind that there is: {message.kind}")
            return
        expected = self._name_of(message)
        if expected is not None and message.guid != expected:
            self._note("messages", f"{label} is for another place than its name says")
        if (message.due_at is not None) != (message.kind == "timer"):
            self._note(
                "messages", f"{label} is {'' if message.due_at is None else 'not '}to be due some time"
            )
        again = max(0, self._drove[message.guid] - 1)
        if message.redeliveries != again:
            self._note("messages", f"{label} was delivered again {message.redeliveries} times, not {again}")
        if message.acked_at is not None and message.acked_at < message.created_at:
            self._note("messages", f"{label} was acknowledged before it was there")
        self._brings(label, message)

    def is_left(self, message: Message) -> bool:
        """Tell whether a message is left of a turn that is trimmed, and note one that should not be.

        What stays is what its sender may repeat; the word of a child that ended later comes afterwards.
        """
        if message.dimension >= self._said.turns_gone or (message.place is None and not message.is_of_root):
            return False
        is_known = message.kind == "signal" and is_of_sender(message.guid, message.job_id)
        late = message.kind == "child" and not message.ledger
        if message.acked_at is None or not (is_known or late):
            turn = f"turn {message.dimension}, which is trimmed"
            self._note("removals", f"{message.kind} {message.guid} is of {turn}")
        return True

    def close(self) -> None:
        """Say which messages are not there that have driven attempts, or are timers of waits."""
        for guid in sorted(self._unheard) if self._book.ledger_form else ():
            self._note("messages", f"{guid} is not there, and the facts tell of it")

    def _name_of(self, message: Message) -> str | None:
        """Return what a message must be called: all but signals are called by their place."""
        job_id, dimension, occurrence = self._book.job_id, message.dimension, message.occurrence or 0
        if message.is_of_root:
            cancels = cancel_of(job_id) if dimension == self._book.dimension else ""
            name = turn_of(job_id, dimension) if message.name == AGAIN else cancels
            return name if occurrence == 1 else ""
        match message.kind:
            case "resume":
                return join_of(job_id, str(Group(dimension, message.name, occurrence)))
            case "timer":
                return timer_of(job_id, (dimension, message.name, occurrence))
            case "child":
                index = message.guid[-_INDEX_DIGITS:]
                return f"child:{job_id}.{dimension}.{occurrence}.{index}" if index.isdigit() else ""
            case "result":
                return _name_of_result(job_id, message)
            case _:
                return None

    def _brings(self, label: str, message: Message) -> None:
        """Compare what a signal says with what its wait has returned; the others say nothing, or a state."""
        if message.kind == "child":
            return
        if message.kind not in _SPEAK and message.payload is not None:
            self._note("messages", f"{label} says something, and has nothing to say")
        place = message.place
        if not message.is_taken or place is None or message.is_of_root or place not in self._said.results:
            return
        result: str | None = "null" if message.payload is None else message.payload
        if message.kind == "result":
            value, error = ended(message.payload)
            result = value if error is None else error
        if self._said.results[place] != hash(result) or self._said.answers.get(
            place, hash(message.payload)
        ) != hash(message.payload):
            self._note("messages", f"{label} is not what its wait has returned")
