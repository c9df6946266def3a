"""Give back: a job whose end the store did not take is left to other workers, and not charged.

It runs in every round and asks the store nothing while there is nothing to give back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import ClassVar

from tallystick.engine.refusals import turn_down
from tallystick.engine.segment import Segment
from tallystick.errors import OutcomeUnknown, StaleLease, StoreError
from tallystick.store.api import Bundle, Outcome
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker

_log = logging.getLogger("tallystick.worker")


class GiveBack(Role):
    """Gives back what one worker owes."""

    name: ClassVar = "give back"

    def __init__(self, worker: Worker, reclaim: Callable[[], None]) -> None:
        """Prepare; `reclaim` takes back attempts whose lease is over."""
        self._worker = worker
        self._reclaim = reclaim

    def run(self) -> None:
        """Give back every job whose end the store did not take; its lease may be over.

        One whose end the books refuse is held instead. If they refuse that too, it is left to its lease.
        """
        worker = self._worker
        owed = list(worker.owed)
        if not owed:
            return
        told = self._give(owed)
        for segment in [segment for segment, outcome in told if outcome is None]:
            worker.given_back(segment)
            worker.poke()
        over = [segment for segment, outcome in told if isinstance(outcome, StaleLease)]
        if over:
            self._reclaim()
        for segment in over:
            worker.given_back(segment)
        for segment, outcome in told:
            if isinstance(outcome, StoreError):
                raise outcome
            if isinstance(outcome, BaseException) and not isinstance(outcome, StaleLease):
                worker.given_back(segment)
                _log.error(
                    "job %s: left to its lease, %s",
                    segment.job_id,
                    outcome,
                    extra={"action": "segment.left", "job_id": segment.job_id},
                )

    def _give(self, owed: Sequence[Segment]) -> list[tuple[Segment, Outcome | BaseException]]:
        """Write what ends these segments, and return what came of each.

        What was refused on a history that the store does not have is nothing to hold the job for: it goes on
        from what is recorded, and is refused again if there is a reason.
        """
        call_all = self._worker.committer.call_all
        told = dict(zip(owed, call_all([_bundle(segment) for segment in owed]), strict=True))
        doubted = [
            segment
            for segment, outcome in told.items()
            if isinstance(outcome, OutcomeUnknown) and segment.turned_down is not None
        ]
        for segment in doubted:
            segment.turned_down = None
        told.update(zip(doubted, call_all([_bundle(segment) for segment in doubted]), strict=True))
        return list(told.items())


def _bundle(segment: Segment) -> Bundle:
    refused = segment.turned_down
    return segment.given_back() if refused is None else turn_down(segment, refused)
