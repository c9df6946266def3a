"""Whole lives of a job, one process at a time: each change complete, or cut off after any of its requests.

Nobody is at work between two changes, so a state is what stands in the tables and the time, and no tags
matter: one state of each form is gone on from. Reports come in their order, a cancel at any moment. From
every state the sweep alone must bring the job to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    CancelProtocol,
    MarkSent,
    NotPublished,
    ProtocolRequest,
    StepFence,
)
from tallystick.store.azure import keys
from tallystick.store.azure.changing import Here
from tallystick.store.azure.requests import Asking, Find, Get, Reply
from tallystick.testing.conformance.protocol_runs import FINAL, OK, PUSHED, RETRY, RunningProtocol
from tests.azure.forms import Form
from tests.azure.interleaving import Known, Verb, asked, mended, relayed, subject_of, swept
from tests.azure.service import Tables
from tests.azure.worlds import ModelSubject


def _looked(job_id: str) -> Verb:
    """Return the turn of a worker: it sweeps, then it relays. Between the two it may die."""

    def verb(here: Here) -> Asking[Any]:
        heard = yield from swept(job_id)(here)
        return heard, (yield from relayed(job_id)(here))

    return verb


class Stand(NamedTuple):
    """What is in the tables while nobody is at work, and the time."""

    tables: Tables
    now: int


def by_rows(stand: Stand) -> Hashable:
    """Return what tells a state from all others whose rows are not the same."""
    return stand.tables.content, stand.now


def by_form(stand: Stand) -> Hashable:
    """Return what tells a state from those that go on in another way."""
    return Form(*stand).print()


class Lives:
    """The lives of a job of some steps, with so many crashes on the way.

    One step of the job is tried a second time; with `all_tries` each is, and a third time, and any may fail.
    """

    def __init__(
        self,
        steps: int,
        crashes: int,
        *,
        all_tries: bool = False,
        name: Callable[[Stand], Hashable] = by_form,
    ) -> None:
        subject = ModelSubject()
        self._job_id = RunningProtocol(subject, steps, PUSHED).job_id
        self._begin = Stand(subject.client.tables, subject.clock.wall_ms())
        self._crashes = crashes
        self._all_tries = all_tries
        self._name = name
        # How many states were visited with no crash on the way, with one at most, and so on.
        self.by_crashes: list[int] = []
        self._known: Known = set()
        self.forms: set[Hashable] = set()
        self.ends = 0

    def search(self) -> None:
        """Visit every state, with as few crashes as it takes to come there."""
        seen: set[Hashable] = set()
        left = {self._name(self._begin): self._begin}
        for crashes in range(self._crashes + 1):
            cut: dict[Hashable, Stand] = {}
            while left:
                name, stand = left.popitem()
                seen.add(name)
                self.forms.add(by_form(stand))
                mended(*stand, self._known)
                verbs = self._verbs(stand)
                self.ends += not verbs
                for now, verb in verbs:
                    whole, *parts = self._done(stand.tables, now, verb)
                    left |= self._new([whole], seen)
                    if crashes < self._crashes:
                        cut |= self._new(parts, seen)
            self.by_crashes.append(len(seen))
            left = {name: stand for name, stand in cut.items() if name not in seen}

    def _new(self, stands: list[Stand], seen: set[Hashable]) -> dict[Hashable, Stand]:
        named = {self._name(stand): stand for stand in stands}
        return {name: stand for name, stand in named.items() if name not in seen}

    def _verbs(self, stand: Stand) -> list[tuple[int, Verb]]:
        """Return what may be said to the job as it stands, and when; nothing if it has ended."""
        subject = subject_of(*stand)
        picture = subject.store.protocol(self._job_id)
        assert picture is not None
        step = picture.active
        if step is None:
            return []
        fence = StepFence(self._job_id, step.step_id, step.attempt_no, step.lease_id or "")
        lease = f"{step.step_id}-{step.attempt_no}"
        cancelling = picture.job.state == JobState.CANCELLING
        is_first = all(each.attempt_no <= 1 for each in picture.steps) and not cancelling
        goes_wrong = is_first or self._all_tries
        said: list[ProtocolRequest] = []
        match step.state:
            case StepState.DISPATCHING:
                said.append(MarkSent(fence))
                if self._all_tries and picture.pending is not None:
                    said.append(NotPublished(fence, picture.pending.tries, "gone", final=True))
            case StepState.AWAITING_ACK:
                said.append(AckStep(fence))
            case StepState.IN_PROGRESS:
                said.append(AnswerStep(fence, OK, f"ok-{lease}", relays=True))
                if goes_wrong:
                    said.append(AnswerStep(fence, RETRY, f"retry-{lease}"))
                if self._all_tries:
                    said.append(AnswerStep(fence, FINAL, f"final-{lease}"))
        if not cancelling:
            said.append(CancelProtocol(self._job_id))
        verbs = [(stand.now, asked(request)) for request in said]
        if goes_wrong or step.state == StepState.FAILED_RETRY:
            due = min(keys.due_instant(row.rk) for row in subject.rows(keys.DUE))
            verbs.append((max(stand.now, due), _looked(self._job_id)))
        return verbs

    def _done(self, tables: Tables, now: int, verb: Verb) -> list[Stand]:
        """Let a process change the job; return how things stand at its end, and before each write."""
        after, parts = tables.copy(), [Stand(tables, now)]
        asking = verb(Here(lambda: now, "token"))
        reply: Reply = None
        try:
            while True:
                request = asking.send(reply)
                if not isinstance(request, Get | Find):
                    parts.append(Stand(after.copy(), now))
                reply = after.answer(request)
        except StopIteration:
            return [Stand(after, now), *parts]
