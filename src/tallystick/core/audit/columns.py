"""The columns of a job and of its attempts against what the facts say of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.core.audit.book import AttemptRow, Book, Findings, WholeJob
from tallystick.core.audit.fingerprints import fingerprint, is_known, of_birth, of_end
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.audit.told import Account, Began
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.core.pictures import CANCEL, START
from tallystick.core.values import NewJob
from tallystick.core.verbs.asking import DEADLINE
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.hooks import choices
from tallystick.core.verbs.trimming import start_print

_PROTOCOL: Final = "protocol"
_HOLDS: Final = frozenset(hold.value for hold in Hold)


class Columns:
    """What a job and its attempts say, judged once all facts were read."""

    def __init__(
        self, book: Book, whole: WholeJob, said: Account, attempts: Sequence[AttemptRow], findings: Findings
    ) -> None:
        """Take what is compared."""
        self._book, self._whole, self._said = book, whole, said
        self._attempts, self._note = attempts, findings.note
        self._final = JobState(book.state) in JOB.final
        self._is_protocol = whole.born.kind == _PROTOCOL

    def judge(self) -> None:
        """Compare everything."""
        self._birth()
        self._instants()
        self._hold()
        self._asked()
        self._kin()
        if self._is_protocol:
            # Workers do not claim it: its start is over when it is made.
            started = (self._book.start_acked_at, self._whole.rest.start_redeliveries)
            if started != (self._whole.born.created_at, 0):
                self._note("times", f"its start was acknowledged {_when(started[0])}, or delivered again")
            if self._whole.rest.ready_at is not None:
                self._note("times", "it is due, and workers do not claim it")
            return
        self._end()
        self._counts()
        self._drivers()
        before = 0
        for row in self._attempts:
            self._attempt(row)
            self._times(row, before)
            before = row.finished_at or row.started_at or before

    def _birth(self) -> None:
        """Compare what was submitted with the first fact; a turn has brought other arguments since."""
        book, said, born = self._book, self._said, self._whole.born
        printed = said.birth_print
        if printed is None:
            return
        if not is_known(printed):
            self._note("birth", "what was submitted is told in a form that is not known here")
        elif not self._is_born(born, printed):
            self._note("birth", "a column that was submitted is not what the first fact says")
        if is_known(said.payload) and said.payload != fingerprint(born.payload):
            self._note("birth", f"its arguments are not those of turn {book.dimension}")
        if said.hashes is not None and said.hashes[1] != born.idempotency_hash:
            self._note("birth", "its content is not the one that has replaced what was submitted")
        if book.ledger_form != 1:
            self._note("birth", "it says that it is of another form than its first fact")

    def _is_born(self, born: NewJob, printed: object) -> bool:
        """Tell whether this was submitted; which hooks the program declares is said again by each claim."""
        given = str(self._said.given) if self._said.has_turned else None
        if self._said.hashes is not None:
            born = born._replace(idempotency_hash=str(self._said.hashes[0]))
        step = self._whole.rest.parent_step
        return printed == of_birth(born, step, given) or any(
            printed == of_birth(born._replace(hooks=hooks), step, given) for hooks in choices()
        )

    def _end(self) -> None:
        """Compare result and error with the fact that has ended the job; before that there is none."""
        book, rest = self._book, self._whole.rest
        values = (rest.result, rest.error, book.error_code, rest.error_message)
        if not self._final:
            if (rest.result, rest.error, rest.error_message) != (None, None, None):
                self._note("end", "the job goes on and has a result or an error")
            late = book.state == JobState.CANCELLING and self._whole.born.deadline_at is not None
            if book.error_code is not None and not (late and book.error_code == DEADLINE):
                self._note("end", f"the job is {book.state} and has the code {book.error_code}")
            return
        ended = self._said.ended
        if ended is not None and (not is_known(ended) or ended != of_end(*values)):
            self._note("end", "its result or error is not what the fact of its end says")

    def _instants(self) -> None:
        """Compare instants: when it ended, when it is due, that it is not pruned."""
        book, rest = self._book, self._whole.rest
        if self._final != (rest.completed_at is not None):
            self._note("times", f"it is {book.state}, and ended {_when(rest.completed_at)}")
        if self._final and rest.ready_at is not None:
            self._note("times", "it has ended and is due")
        if rest.pruned_at is not None:
            self._note("times", "it is marked as pruned, and it is here")
        newest = rest.updated_at if rest.completed_at is None else rest.completed_at
        if newest != rest.updated_at:
            self._note("times", f"it ended at {rest.completed_at} and was last written at {rest.updated_at}")
        known = (self._whole.born.created_at, *(row.finished_at or row.started_at for row in self._attempts))
        if book.ledger_form and rest.updated_at < max(at or 0 for at in known):
            self._note("times", f"it was last written at {rest.updated_at}, before what was written with it")
        if not self._final:
            if book.start_acked_at is not None and not self._is_protocol:
                self._start()
            return
        last = self._attempts[-1].finished_at if self._attempts else None
        if last is not None and last != rest.completed_at:
            self._note("times", f"its last attempt ended at {last}, the job at {rest.completed_at}")
        if not self._is_protocol:
            self._start()

    def _start(self) -> None:
        """Compare when the start of a job was acknowledged."""
        book, rest = self._book, self._whole.rest
        if not book.ledger_form or self._said.turns_gone:
            return  # it was in a turn that is trimmed, and `_counts` compares what is told of it
        # Step 2 of the start is done when the attempt that it drove is over, or with the end of the job.
        driven = [row for row in self._attempts if row.guid == START][-1:]
        legal = {row.finished_at for row in driven} | ({rest.completed_at} if self._final else set())
        if driven and driven[0].reason == AbortReason.SUSPENDED and not self._said.effects:
            # One that was put away before it was known what came of an effect is driven by its start again.
            legal = {driven[0].finished_at}
        if book.start_acked_at not in legal:
            self._note("times", f"its start was acknowledged {_when(book.start_acked_at)}")

    def _hold(self) -> None:
        """Compare the hold with its fact; while an attempt runs, its holder will tell."""
        book, told = self._book, self._said.hold
        held = (book.hold, book.hold_reason)
        if (book.hold is None) != (book.hold_reason is None) and (book.ledger_form or book.hold is None):
            held_so = "not held and has a reason for it" if book.hold is None else "held for no reason"
            self._note("hold", f"it is {held_so}")
        if book.hold is not None and book.hold not in _HOLDS:
            self._note("hold", f"it is held as {book.hold}, which is no hold")
        if self._final or book.state == JobState.CANCELLING:
            if book.hold is not None:
                self._note("hold", f"it is {book.state} and held ({book.hold})")
        elif told is not None and held != told and not self._is_live():
            self._note("hold", f"its hold is {book.hold or 'none'}, the facts say {told[0] or 'none'}")

    def _is_live(self) -> bool:
        return bool(self._attempts) and AttemptState(self._attempts[-1].status) not in ATTEMPT.final

    def _asked(self) -> None:
        """Check that a job which was cancelled was asked to end, and that no other has an instant for it."""
        book = self._book
        asked = book.state in (JobState.CANCELLING, JobState.CANCELLED)
        if not self._is_protocol and book.ledger_form and asked and book.cancel_at is None:
            self._note("state", f"it is {book.state} and was never asked to end")

    def _kin(self) -> None:
        """Compare where it comes from: a fork says so in its first fact."""
        rest, said = self._whole.rest, self._said
        if said.first is not None and rest.retry_of != said.born.get("fork_of"):
            self._note("birth", f"it is a fork of {rest.retry_of}, the facts say {said.born.get('fork_of')}")
        if rest.retried_as is not None and self._book.state != JobState.FAILED_FINAL:
            self._note("birth", f"it is {self._book.state} and {rest.retried_as} has taken its place")
        if not self._is_protocol:
            strange = (rest.protocol_id, rest.mode, rest.doc_id, rest.current_step_index)
            if any(value is not None for value in strange):
                self._note("birth", "it has columns that only protocol jobs have")

    def _counts(self) -> None:
        """Count how often it was claimed, and how often its start was delivered again."""
        said, rest = self._said, self._whole.rest
        claimed = said.attempts_gone + len(said.began)
        if said.first is not None and rest.attempts_total != claimed:
            self._note("attempts", f"it counts {rest.attempts_total} claims, the facts {claimed}")
        if said.turns_gone:
            told = start_print(rest.start_redeliveries, self._book.start_acked_at)
            if said.trimmed is not None and said.trimmed.start != told:
                self._note("attempts", "its start is not what the fact of its trimming says")
            return
        started = sum(row.guid == START and row.attempt in self._said.began for row in self._attempts)
        if rest.start_redeliveries != max(0, started - 1):
            self._note(
                "attempts",
                f"its start was delivered again {rest.start_redeliveries} times, not {started - 1}",
            )

    def _drivers(self) -> None:
        """Judge which messages drove its attempts: the start until it is settled, then others."""
        settled = self._said.turns_gone > 0
        for row in self._attempts if self._book.ledger_form else ():
            name = f"attempt {row.attempt}"
            if row.guid == START and settled:
                self._note("attempts", f"{name} was driven by the start, which had done its work")
            if not row.guid and (row.attempt in self._said.began or row.reason != AbortReason.FATAL):
                self._note("attempts", f"{name} was driven by no message")
            settled = settled or row.guid != START or self._said.settles(row.attempt)

    def _attempt(self, row: AttemptRow) -> None:
        """Compare which worker had it and why it ended, as the facts of its claim and its end say."""
        name, said = f"attempt {row.attempt}", self._said
        began = said.began.get(row.attempt)
        held = (row.lease_id, row.lease_owner)
        if began is not None and began.lease_id is not None and held != (began.lease_id, began.owner):
            self._note("attempts", f"{name} has another lease or owner than its claim says")
        if began is None and said.birth_print is not None and held != (CANCEL, CANCEL):
            self._note("attempts", f"{name} was never claimed, and has a lease")
        told = said.aborted.get(row.attempt)
        if told is None:
            if (row.reason, row.charged) != (None, False):
                self._note("attempts", f"{name} is {row.status} and has a reason or is charged")
            return
        reason, charged = told
        if (reason is not None and row.reason != reason) or (charged is not None and row.charged != charged):
            said_so = f"{row.reason}, {'' if row.charged else 'not '}charged"
            self._note("attempts", f"{name} ended {said_so}, and its fact says otherwise")

    def _times(self, row: AttemptRow, before: int) -> None:
        """Compare when it began with the fact of its claim, or the birth of a job that was born claimed."""
        name, said = f"attempt {row.attempt}", self._said
        began = said.began.get(row.attempt)
        ended = AttemptState(row.status) in ATTEMPT.final
        if ended != (row.finished_at is not None):
            self._note("times", f"{name} is {row.status}, and ended {_when(row.finished_at)}")
        if began is None:
            if row.started_at != row.finished_at:
                self._note("times", f"{name} was never claimed, and began {_when(row.started_at)}")
        elif began.lease_id is not None and row.started_at not in self._beginnings(row.attempt, began):
            self._note("times", f"{name} began {_when(row.started_at)}, its claim says {began.at}")
        if row.finished_at is not None and row.finished_at < (row.started_at or 0):
            self._note("times", f"{name} ended before it began")
        if (row.started_at or before) < before:
            self._note("times", f"{name} began before the one before it was over")

    def _beginnings(self, attempt: int, began: Began) -> tuple[int, ...]:
        """Return when an attempt may have begun: with its claim, by the clock of the store.

        A job that is born claimed has the instants of a process in its facts. Older facts do not tell it from
        one whose claim came in the same millisecond.
        """
        born, first = self._whole.born.created_at, self._said.first
        if began.at_birth:
            return (born,)
        same = attempt == 1 and first is not None and first.at == began.at
        return (began.at, born) if same else (began.at,)


def _when(at: int | None) -> str:
    return "never" if at is None else f"at {at}"
