"""What a hold does: nobody claims the job, whoever runs it is put away, and only a resumption ends it."""

from __future__ import annotations

from typing import Any

from tests.model.outside import Outside
from tests.model.search import Violation
from tests.model.world import CANCELLING, NOBODY, SUCCEEDED, Draft, Job, State


class Holding(Outside):
    """The moves of somebody who pauses and resumes the first job."""

    def _hold_moves(self, state: State, found: list[Any]) -> None:
        job = state[0][0]
        final, cancelling, held = job.state >= SUCCEEDED, job.state == CANCELLING, bool(job.hold)
        verdict = self.rules.hold(final, cancelling, held, job.live > 0)
        expected = "ENDED" if final or cancelling else "ALREADY" if held else "ASKED" if job.live else "HELD"
        if verdict != expected:
            raise Violation(f"a hold says {verdict} and not {expected}")
        resumed = self.rules.resume(final, held)
        if resumed != ("ENDED" if final else "FREE" if held else "NOT_HELD"):
            raise Violation(f"a resumption says {resumed}")
        if state[5][-1] and verdict in ("HELD", "ASKED"):
            draft = Draft(state)
            draft.jobs[0] = job._replace(hold=1, wish=1)
            draft.env[-1] -= 1
            found.append((("pause", 0, verdict), draft.freeze()))
        if resumed == "FREE":
            draft = Draft(state)
            draft.jobs[0] = job._replace(hold=0, wish=0)
            found.append((("resume", 0), draft.freeze()))

    def _stops(self, job: Job) -> bool:
        """Tell whether a segment is put away at its call; its flag may be older than a cancellation."""
        if self.rules.stops(True, True):
            raise Violation("a job that is being cancelled is put away instead of ending")
        stops = self.rules.stops(bool(job.hold), job.state == CANCELLING)
        if stops and not job.hold:
            raise Violation("a job that nobody holds is put away")
        return bool(stops)

    def _rest(self, draft: Draft, j: int) -> None:
        """End a segment because its job is held: due at once, so that a resumption is enough."""
        job = draft.jobs[j]
        draft.jobs[j] = job._replace(live=0, ready=1, driver=NOBODY, hold=self._kept(job))

    def _kept(self, job: Job) -> int:
        """Return the hold after the end of an attempt that may not have known of it."""
        return 0 if "the end of an attempt keeps the hold" in self.flaws else job.hold


def check_hold(j: int, job: Job) -> None:
    """A hold is there exactly as long as somebody wishes it, and never on what has ended or is to end."""
    if job.state >= CANCELLING and job.hold:
        raise Violation(f"job {j} is held although it has ended or is being cancelled")
    if job.hold != job.wish and job.state < CANCELLING:
        raise Violation(f"a hold of job {j} was lost: nobody has resumed it")
