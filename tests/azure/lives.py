"""Whole lives of a job, one process at a time: each change complete, or cut off after any of its requests.

Nobody is at work between two changes, so a state is what stands in the tables and the time, and no tags
matter. Reports come in their order, a cancel at any moment; one step of the job is tried a second time. From
every state the sweep alone must bring the job to its end.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    CancelProtocol,
    MarkSent,
    ProtocolRequest,
    StepFence,
)
from tallystick.store.azure import keys
from tallystick.store.azure.changing import Here
from tallystick.store.azure.requests import Asking, Reply
from tallystick.testing.conformance.protocol_runs import OK, PUSHED, RETRY, RunningProtocol
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

    @property
    def print(self) -> tuple[int, int]:
        """Return what stands for it."""
        return self.tables.content, self.now


class Lives:
    """The lives of a job of some steps, with so many crashes on the way.

    If there are more than `states_max`, those with few crashes come first, and some of the others by chance.
    """

    def __init__(self, steps: int, crashes: int, states_max: int = 10**9) -> None:
        subject = ModelSubject()
        self._job_id = RunningProtocol(subject, steps, PUSHED).job_id
        self._begin = Stand(subject.client.tables, subject.clock.wall_ms())
        self._crashes = crashes
        self._states_max = states_max
        # How many states were visited with no crash on the way, with one at most, and so on.
        self.by_crashes: list[int] = []
        self._known: Known = set()
        self.states = 0
        self.ends = 0
        self.is_whole = False

    def search(self) -> None:
        """Visit every state, with as few crashes as it takes to come there."""
        seen: set[tuple[int, int]] = set()
        left = [self._begin]
        for crashes in range(self._crashes + 1):
            cut: dict[tuple[int, int], Stand] = {}
            random.Random(7).shuffle(left)
            while left and self.states < self._states_max:
                stand = left.pop()
                if stand.print in seen:
                    continue
                seen.add(stand.print)
                mended(*stand, self._known)
                verbs = self._verbs(stand)
                self.states += 1
                self.ends += not verbs
                for now, verb in verbs:
                    whole, *parts = self._done(stand.tables, now, verb)
                    left.append(whole)
                    if crashes < self._crashes:
                        cut |= {part.print: part for part in parts if part.print not in seen}
            self.is_whole = not left
            self.by_crashes.append(self.states)
            left = [stand for name, stand in cut.items() if name not in seen]

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
        first_tries = all(each.attempt_no <= 1 for each in picture.steps) and not cancelling
        said: list[ProtocolRequest] = []
        match step.state:
            case StepState.DISPATCHING:
                said.append(MarkSent(fence))
            case StepState.AWAITING_ACK:
                said.append(AckStep(fence))
            case StepState.IN_PROGRESS:
                said.append(AnswerStep(fence, OK, f"ok-{lease}", relays=True))
                if first_tries:
                    said.append(AnswerStep(fence, RETRY, f"retry-{lease}"))
        if not cancelling:
            said.append(CancelProtocol(self._job_id))
        verbs = [(stand.now, asked(request)) for request in said]
        if first_tries or step.state == StepState.FAILED_RETRY:
            due = min(keys.due_instant(row.rk) for row in subject.rows(keys.DUE))
            verbs.append((max(stand.now, due), _looked(self._job_id)))
        return verbs

    def _done(self, tables: Tables, now: int, verb: Verb) -> list[Stand]:
        """Let a process change the job; return how things stand at its end, and before each request."""
        after, parts = tables.copy(), list[Stand]()
        asking = verb(Here(lambda: now, "token"))
        reply: Reply = None
        try:
            while True:
                request = asking.send(reply)
                parts.append(Stand(after.copy(), now))
                reply = after.answer(request)
        except StopIteration:
            return [Stand(after, now), *parts]
