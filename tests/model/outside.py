"""What happens to jobs that no worker does: time passes, messages arrive, somebody cancels."""

from __future__ import annotations

from typing import Any

from tests.model.search import Violation
from tests.model.world import (
    ABSENT,
    ACKED,
    CANCELLED,
    CANCELLING,
    INBOX,
    NOBODY,
    OPEN,
    RUN,
    SET,
    SUCCEEDED,
    Draft,
    State,
)


class Outside:
    """The moves of senders, clocks and people."""

    def _outside_moves(self, state: State, found: list[Any]) -> None:
        jobs, _group, messages, _order, workers, env = state
        for j, job in enumerate(jobs):
            if job.live == 1:
                held = any(worker[:3] == (RUN, j, job.attempt) for worker in workers)
                if not held or env[1]:
                    draft = Draft(state)
                    draft.jobs[j] = job._replace(live=2)
                    draft.env[1] -= held
                    found.append((("expire", j), draft.freeze()))
        for index, m in enumerate(self.signals):
            if env[3 + index]:
                draft = Draft(state)
                verdict = self._deliver(draft, m)
                if verdict != "REFUSE":
                    draft.env[3 + index] -= 1
                    found.append((("deliver", m, verdict), draft.freeze()))
        for m in self.timers.values():
            if messages[m][0] == SET:
                draft = Draft(state)
                draft.messages[m] = (INBOX, messages[m][1])
                draft.order += (m,)
                found.append((("fire", m), draft.freeze()))
        self._cancel_moves(state, found)

    def _cancel_moves(self, state: State, found: list[Any]) -> None:
        job = state[0][0]
        final = job.state >= SUCCEEDED
        verdict = self.rules.cancel(final, job.live > 0, False)
        forced = self.rules.cancel(final, job.live > 0, True)
        if (verdict == "ASK") is not (job.live > 0 and not final) or (forced == "END") is final:
            raise Violation(f"a cancellation says {verdict}, and {forced} when the grace is over")
        if state[5][2] and verdict != "NOTHING" and job.state != CANCELLING:
            draft = Draft(state)
            draft.env[2] -= 1
            if verdict == "ASK":
                draft.jobs[0] = job._replace(state=CANCELLING, hold=0, wish=0)
            else:
                self._cancelled(draft, 0)
            found.append((("cancel", 0, verdict), draft.freeze()))
        if job.state == CANCELLING:
            draft = Draft(state)
            self._cancelled(draft, 0)
            found.append((("grace", 0), draft.freeze()))

    def _cancelled(self, draft: Draft, j: int) -> None:
        """End a job at once: the live attempt is aborted, or one is made that never ran."""
        rules, job = self.rules, draft.jobs[j]
        if job.state >= SUCCEEDED:
            raise Violation("a job that has ended is cancelled")
        draft.jobs[j] = job = job._replace(driver=NOBODY)
        self._drop(draft, j)
        start = job.start
        if not job.acked:
            start = start or 1  # a start that nobody entered is entered by the attempt that was never made
            start = start if rules.work_done(start) else rules.mark_work(start)
            start = rules.mark_tasks(rules.mark_children(start, True))
        draft.jobs[j] = job._replace(
            state=CANCELLED,
            attempt=job.attempt + (not job.live),
            live=0,
            ready=0,
            semaphore=0,
            start=start,
            acked=1,
            wait=0,
            ended="CANCELLED",
            hold=0,
            wish=0,
        )
        if j:
            self._count_child(draft, True)

    def _deliver(self, draft: Draft, m: int) -> str:
        """Store a message once and wake its job if it waits for it."""
        job, message, group = draft.jobs[0], self.shape.messages[m], draft.group
        if draft.messages[m][0] != ABSENT and "a message is known by its guid" not in self.flaws:
            return "KNOWN"
        if message.kind == "join":
            waits, activity = group.state == OPEN, group.ledger
        else:
            waits = job.wait > 0 and self._fits(m, job.place)
            activity = job.wait if waits else None
            if message.kind == "result" and job.place == message.answers and job.live and not waits:
                activity = self.rules.leg1(0)[1]
            if message.kind == "result" and job.place > message.answers:
                activity = self.rules.complete
        verdict = self.rules.deliver(
            job.state >= SUCCEEDED, message.kind != "signal", activity, waits, job.live > 0
        )
        if verdict in ("WAKE", "KEEP"):
            draft.messages[m] = (INBOX, 0)
            draft.order = (m, *draft.order) if self.shape.skew else (*draft.order, m)
        if verdict == "DROP":
            draft.messages[m] = (ACKED, 0)
        if verdict == "WAKE" and "delivery wakes" not in self.flaws:
            draft.jobs[0] = draft.jobs[0]._replace(ready=1)
        return verdict
