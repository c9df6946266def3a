"""One segment of a workflow under one lease; while it lasts, only it writes facts of its job.

A segment knows what was recorded before, hands out the next place in the chain, and turns what happens into
bundles. It writes nothing itself. Every bundle carries the fence, so a segment that lost its lease cannot
write any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from tallystick.clock import Clock
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.json_forms.sealed import is_sealed
from tallystick.core.ledger.marks import recorded
from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.tuples import make
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.trimming import TRIM, Trimmed
from tallystick.engine.failure import Failure
from tallystick.engine.pending_writes import Request
from tallystick.engine.segment_parts.group_shape import GroupShape, newborn
from tallystick.engine.segment_parts.known import NO_PAST, Answers, EarlierCalls, suspended, told_by
from tallystick.engine.segment_parts.notes import left_by, notes_in, still_sealed
from tallystick.engine.segment_parts.paths import ABORTED, CANCELLED, failed, returned, turned
from tallystick.engine.segment_parts.shown import Shown
from tallystick.engine.submission import Submission
from tallystick.errors import LedgerCeiling, TallyError
from tallystick.store.api import (
    Await,
    Bundle,
    ClaimedJob,
    Cycle,
    EndAttempt,
    EndJob,
    Fact,
    Group,
    HoldJob,
    RecordEvent,
    RecordStep,
    Spawn,
    TrimTurns,
    TurnEnd,
    Wait,
    Wake,
)

# The digits of an inline step that is recorded at its first try: its row is written once, with all of them.
_AT_ONCE: Final = recorded(1)

_TO_TEXT: Final = msgspec.json.Encoder()


class Segment:
    """What one claim of a job may read and write."""

    __slots__ = (
        "_clock",
        "_counts",
        "_notes",
        "_owes",
        "_recorded_notes",
        "answers",
        "cancelled",
        "claimed",
        "deadline_at",
        "failed_tries",
        "fence",
        "handed",
        "interrupt",
        "job_id",
        "leaving",
        "listener",
        "lost",
        "may_owe",
        "moved",
        "open_effects",
        "over",
        "owner",
        "past",
        "paused",
        "shown",
        "suspended",
        "turned_down",
        "undecided",
        "unreadable",
    )

    def __init__(self, claimed: ClaimedJob, clock: Clock, owner: str = "") -> None:
        """Take over where the last segment of this job ended; `owner` is the worker that has claimed it."""
        self.claimed, self.owner = claimed, owner
        self.fence = claimed.fence
        self.job_id = claimed.fence.job_id
        self.lost = self.paused = self.suspended = False
        # Its function has ended, and how is on its way to the store.
        self.over = False
        # The last step, handed over and not known to be durable: nothing new begins before it is.
        self.handed: Request | None = None
        self.turned_down: TallyError | None = None
        # Whether this segment has written anything of its own, and so is beyond all earlier ones.
        self.moved = False
        self.cancelled = claimed.cancelling
        # What stops an async step when the job was asked to end; set by the slot that runs it.
        self.interrupt: Callable[[], None] | None = None
        # What lets its function look again for a signal, while that stays in memory at a wait.
        self.listener: Callable[[], None] | None = None
        # It has asked to be put away until something comes, and may be: its function is about to be left.
        self.leaving = False
        # An answer is kept that a later segment would not come to again: it must be durable first. It can owe
        # that, and answers and values, only if it ever took an answer, showed a value or decided something.
        self.undecided = self.may_owe = False
        # Whether the job may have more open than what began this segment.
        self._owes = claimed.semaphore > 1
        self.open_effects = 0  # called here, and what came of them is not on the books
        self.answers = Answers(claimed, clock)
        # Most jobs show no values.
        self.shown: Shown | None = None
        self._clock = clock
        # By the wall clock here, for people to read: the store has its own, and ends the job by that.
        self.deadline_at = None if (left := claimed.time_left_ms) is None else clock.wall_ms() + left
        self._counts: dict[str, int] = {}
        self._notes: dict[str, object] = {}
        self.unreadable = ""
        if claimed.records or claimed.wake is not None or is_sealed(claimed.payload):
            self.unreadable = still_sealed(claimed)
        self._recorded_notes: dict[str, object] = {}
        self.failed_tries: dict[tuple[str, int], int] = {}
        # What earlier segments recorded or opened, and whether this one has come to it.
        self.past = NO_PAST
        if claimed.records or claimed.tries or claimed.opened:
            self._take_over(claimed)

    def _take_over(self, claimed: ClaimedJob) -> None:
        """Read what earlier segments of this job recorded."""
        self._recorded_notes, self.failed_tries, unreadable = left_by(claimed)
        self.unreadable = self.unreadable or unreadable
        if not self.unreadable:
            self.past = EarlierCalls(claimed)

    @property
    def waited(self) -> bool:
        """Tell whether the end of the job has to look for what is still open."""
        owes = self._owes or self.open_effects > 0
        return owes or (self.claimed.driver != "start" and not self.answers.has_driver)

    def number(self, name: str) -> int:
        """Return which occurrence of a step this call is: the first, the second, ..."""
        occurrence = self._counts.get(name, 0) + 1
        self._counts[name] = occurrence
        return occurrence

    def passed(self) -> bool:
        """Tell whether an earlier segment went beyond this point: more is recorded, or waited for."""
        if self.past.behind or self.past.open:
            return True
        pending = any(not self.past.has(place) for place in self.failed_tries)
        return not self.moved and (self._woken or pending)

    @property
    def _woken(self) -> bool:
        """Tell whether a message for one of its waits brought the job here."""
        return self.claimed.driver != "start" and not self.claimed.driver.startswith("again:")

    def decide(self, key: str) -> bool:
        """Answer once whether this job goes the new way here, and keep the answer.

        The new way after a wake-up could not be told from the old way if this segment were lost:
        the message that woke the job is there still, and says that it waits further on.
        """
        decided = self.kept(key)
        if decided is None:
            decided = not self.passed()
            self.keep(key, decided)
            self.may_owe = True
            self.undecided = self.undecided or (decided and self._woken)
        return bool(decided)

    def owes_answers(self, kind: str) -> bool:
        """Tell whether answers must be durable before a call of this kind; a tx keeps decisions itself."""
        return bool(self.answers.taken) or bool(self.shown) or (self.undecided and kind != "tx")

    def decided(self) -> Bundle:
        """Return what makes answers and drawn values durable before anything depends on them, if any."""
        owed = self.owed()
        noted = (RecordEvent(self.fence, self._fact("note", {})),) if self._notes else ()
        return (*owed, *noted)

    def owed(self) -> Bundle:
        """Return the answers that were taken and the values that were set, to be written now."""
        if self.shown is None:
            return self.answers.carried()
        values, marks = self.shown.carried()
        self._notes.update(marks)
        return (*self.answers.carried(), *values)

    def show(self, name: str, value: str, mark: str | None = None) -> Shown:
        """Take a value that the job shows: with what comes next it is durable, and its mark too."""
        self.shown = Shown.of(self.shown, self.fence)
        self.may_owe = True
        self.shown.put(name, value, mark)
        return self.shown

    def tries(self, name: str, occurrence: int) -> int:
        """Return how many tries of this call have failed so far, in this and in earlier segments."""
        return self.failed_tries.get((name, occurrence), 0)

    def note(self, name: str) -> tuple[bool, object]:
        """Return (True, value) for something drawn before, or (False, None) for the first time."""
        key = f"{name}#{self.number(name)}"
        if key in self._recorded_notes:
            return True, self._recorded_notes[key]
        return False, key

    def kept(self, key: str) -> object:
        """Return what was kept under a key in this segment or before, or None."""
        return self._notes.get(key, self._recorded_notes.get(key))

    def keep(self, key: str, value: object) -> None:
        """Keep a drawn value; it becomes durable with the next bundle, before anything depends on it."""
        self._notes[key] = value

    def step_succeeded(self, kind: str, name: str, occurrence: int, result: str, began: int) -> RecordStep:
        """Return the row of a step that returned."""
        return self._step(kind, name, occurrence, StepState.SUCCEEDED, (result, None), began)

    def step_failed(self, kind: str, name: str, occurrence: int, failure: Failure, began: int) -> RecordStep:
        """Return the row of a step that failed for good."""
        return self._step(kind, name, occurrence, StepState.FAILED_FINAL, (None, failure.text()), began)

    def step_tried(self, name: str, occurrence: int, failure: Failure, delay_ms: int) -> Bundle:
        """Return the bundle of a failed try: counted before its backoff, so that a crash cannot forget it."""
        self.failed_tries[name, occurrence] = failure.tries
        payload = {
            "step": name,
            "occurrence": occurrence,
            "try": failure.tries,
            "delay_ms": delay_ms,
            "error": failure.summary(),
        }
        return (*self.owed(), RecordEvent(self.fence, self._fact("try", payload)))

    def returned(self, result: str) -> Bundle:
        """Return the bundle that ends the job well."""
        end = EndJob.of(
            self.fence,
            JobState.SUCCEEDED,
            self._fact("return", *returned(result)),
            driver=self.claimed.driver,
            waited=self.waited,
            parent=self.claimed.parent,
            result=result,
        )
        return (*self.owed(), end) if self.may_owe else (end,)

    def failed(self, failure: Failure, reason: AbortReason = AbortReason.FATAL) -> Bundle:
        """Return the bundle that ends the job badly; it closes like any other."""
        event = self._fact("fail", failed(failure, reason))
        end = self._end(JobState.FAILED_FINAL, event, reason=reason, failure=failure)
        return (*self.owed(), end)

    def turned(self, payload: str) -> Bundle:
        """Return the bundle that begins the same job again in a new dimension, with these arguments."""
        claimed = self.claimed
        fact = self._fact("again", turned(claimed.dimension + 1, claimed.payload, payload))
        turn = Cycle(self.fence, claimed.driver, claimed.dimension, payload, fact)
        return (*self.owed(), turn)

    def trimmed(self, told: Trimmed, end: TurnEnd) -> Bundle:
        """Return the bundle that removes the turns up to one that is over, with the fact that says so."""
        text = _TO_TEXT.encode(told).decode()
        fact = Fact(self.claimed.chain, TRIM, self._clock.wall_ms(), self.fence.attempt, text)
        return (RecordEvent(self.fence, fact), TrimTurns(self.job_id, end))

    def cancelled_by_request(self) -> Bundle:
        """Return the bundle that ends a job which was asked to end."""
        event = self._fact("cancel", {**CANCELLED})
        return (*self.owed(), self._end(JobState.CANCELLED, event, reason=AbortReason.CANCELLED))

    def released(
        self, reason: AbortReason, *, charged: bool, after_ms: int = 0, failure: Failure | None = None
    ) -> Bundle:
        """Return the bundle that ends the attempt and leaves the job to others, due after a while."""
        # Read once: the store takes the time between the fact and the instant for the while.
        now = self._clock.wall_ms()
        about = {"attempt": ABORTED, "reason": reason.value, "charged": charged, "ready_at": now + after_ms}
        payload: dict[str, object] = {**about}
        if failure is not None:
            payload["error"] = failure.summary()
        fact = self._fact("release", payload)._replace(at=now)
        return (EndAttempt(self.fence, reason, charged, now + after_ms, None, None, fact),)

    def given_back(self, later_ms: int = 0) -> Bundle:
        """Return the bundle that leaves the job to others, due after a while; not charged."""
        return self.released(AbortReason.RELEASED, charged=False, after_ms=later_ms)

    def held(self, hold: str, why: str) -> Bundle:
        """Return the bundle that stops the job until a person resumes it; not charged, no worker crashed."""
        event = self._fact("hold", {"attempt": ABORTED, "hold": hold, "why": why})
        return (EndAttempt(self.fence, AbortReason.HELD, False, event.at, hold, why, event),)

    def put_away(self) -> Bundle:
        """Return the bundle that stops here because the job is held; due as soon as it is resumed.

        It sets no hold of its own: if the job was resumed meanwhile, it simply goes on.
        """
        event = self._fact("hold", {"attempt": ABORTED, "hold": Hold.PAUSED.value})
        return (EndAttempt(self.fence, AbortReason.HELD, False, event.at, None, None, event),)

    def held_waiting(self, hold: str, why: str) -> Bundle:
        """Return the bundle that stops a job which this segment has suspended already."""
        return (HoldJob(self.job_id, Hold(hold), why, since=self.fence.attempt),)

    def spawning(
        self, group: Group, submissions: Sequence[Submission], start: int, shape: GroupShape
    ) -> Bundle:
        """Return the bundle that opens a group, unless it is open, and inserts children from `start` on."""
        self._owes = True
        now = self._clock.wall_ms()
        children = newborn(self.job_id, group, submissions, start, now)
        return (*self.decided(), Spawn(self.fence, self.claimed.chain, group, *shape, children, now))

    def foretold(self, wait: Wait, *, alone: bool = False) -> Wake | None:
        """Return the message that this wait will take, if that is known; see `Answers`.

        Where calls that were recorded or are open are still to come, their order decides; then the store is
        asked.
        """
        if self.past.behind or self.past.open or self.cancelled:
            return None
        return self.answers.find(wait, alone=alone)

    def take(self, wait: Wait, wake: Wake) -> None:
        """Give the wait what was foretold; this segment is beyond all earlier ones now."""
        self.answers.take(wait, wake)
        self.moved = self.may_owe = True

    def awaiting(
        self, *waits: Wait, asked: bool | None = None, after: Bundle = (), alone: bool = False
    ) -> Bundle:
        """Return the bundle that takes the answer to one of these, or suspends until there is one.

        Timers are on the boot clock here, and told by the same look at the wall clock as the fact. `asked`:
        the function was told of a cancellation and waits all the same. `after` becomes durable with it.
        """
        self._owes = self.leaving = True
        told = self.cancelled if asked is None else asked
        before = after or self.decided()
        ahead = self.answers.asking(waits, alone=alone)
        text = _TO_TEXT.encode(suspended(waits)).decode()
        claimed, at = self.claimed, self._clock.wall_ms()
        fact = Fact(claimed.chain, "suspend", at, self.fence.attempt, text)
        due = told_by(at - self._clock.boot_ms(), waits)
        return (*before, Await(self.fence, claimed.driver, claimed.dimension, due, fact, told, ahead))

    def written(self, bundle: Bundle) -> None:
        """Note that a bundle is durable, and with it the values drawn before it."""
        self.moved = True
        if self._notes and (kept := notes_in(bundle)):
            self._recorded_notes.update(kept)
            self._notes = {key: value for key, value in self._notes.items() if key not in kept}
            self.undecided = self.undecided and bool(self._notes)

    def _end(
        self,
        state: JobState,
        fact: Fact,
        *,
        reason: AbortReason | None = None,
        failure: Failure | None = None,
    ) -> EndJob:
        return EndJob.of(
            self.fence,
            state,
            fact,
            driver=self.claimed.driver,
            waited=self.waited,
            parent=self.claimed.parent,
            reason=reason,
            error=failure.stored() if failure else None,
        )

    def _step(
        self, kind: str, name: str, occurrence: int, state: StepState, came: tuple[object, object], began: int
    ) -> RecordStep:
        notes = _TO_TEXT.encode(self._notes).decode() if self._notes else None
        claimed, at = self.claimed, self._clock.wall_ms()
        ledger = _AT_ONCE if not self.failed_tries else recorded(self.tries(name, occurrence) + 1)
        if ledger is None:
            raise LedgerCeiling(f"{name}#{occurrence} was tried as often as can be counted")
        place = (self.fence, claimed.chain, claimed.dimension, name, occurrence)
        return make(RecordStep, (*place, kind, state, ledger, *came, notes, at, began))

    def _fact(self, kind: str, payload: dict[str, object], text: str = "") -> Fact:
        """Return a fact with the values drawn so far; `text` is the payload if it is always the same."""
        if self._notes or not text:
            text = _TO_TEXT.encode({**payload, "notes": self._notes} if self._notes else payload).decode()
        return make(Fact, (self.claimed.chain, kind, self._clock.wall_ms(), self.fence.attempt, text))
