"""What remote workers and the sweep over their steps do in a trace of the model, played on a real store."""

from __future__ import annotations

from typing import Any

from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    DeliverDirective,
    ExpireStep,
    RenewStep,
    StepFence,
)
from tests.model.books import Book
from tests.model.remote_steps import NOW, answer_of, may_be_at_it

Row = tuple[Any, ...]


class ReplayRemotes:
    """The moves of remote workers."""

    name: str
    store: Any
    clock: Any
    subject: Any
    model: Any

    def _told(self, request: Any) -> str:
        (hearing,) = self.store.apply([(request,)])
        if isinstance(hearing, BaseException):
            raise hearing
        return str(hearing.heard.name)

    def _step(self, label: Any, before: Any) -> Any:
        """Return the row of the step that a move is about, as the model had it before."""
        (book, *_children) = self.model.books(before)
        (step,) = (each for each in book.remotes.steps if each.step_id == label[1])
        return step

    def _fence(self, label: Any, before: Any) -> StepFence:
        step = self._step(label, before)
        return StepFence(self.name, step.step_id, step.attempt_no, step.lease_id)

    def _given(self, label: Any, before: Any, state: Any) -> str:
        return self._told(DeliverDirective(*self._fence(label, before)[:3], "w"))

    def _AckStep(self, label: Any, before: Any, state: Any) -> str:  # noqa: N802 (as the label says)
        return self._told(AckStep(self._fence(label, before)))

    def _RenewStep(self, label: Any, before: Any, state: Any) -> str:  # noqa: N802 (as the label says)
        return self._told(RenewStep(self._fence(label, before)))

    def _AnswerStep(self, label: Any, before: Any, state: Any) -> str:  # noqa: N802 (as the label says)
        fence = self._fence(label, before)
        return self._told(AnswerStep(fence, answer_of(fence.lease_id, label[2]), "r9"))

    def _sweep(self, label: Any, before: Any, state: Any) -> str:
        step = self._step(label, before)
        return self._told(ExpireStep(self.name, f"r{step.attempt_no + 1}", step_id=step.step_id))

    def _lapse(self, label: Any, before: Any, state: Any) -> str:
        """Let the time of one step run out and of no other; with the last one that of a job which ends."""
        dimension, _, rest = label[1].partition("/")
        name, _, occurrence = rest.rpartition("#")
        turn = f"job_id = '{self.name}' AND dimension = {dimension}"
        place = f"{turn} AND name = '{name}' AND occurrence = {occurrence}"
        now = self.clock.wall_ms()
        self.subject.write(f"UPDATE steps SET lease_expires_at = {now}, rev = rev + 1 WHERE {place}")
        (old, *_), (new, *_) = self.model.books(before), self.model.books(state)
        if new.job.cancel_at != old.job.cancel_at:
            assert not may_be_at_it(new)
            mine = f"job_id = '{self.name}'"
            self.subject.write(f"UPDATE jobs SET cancel_at = {now}, rev = rev + 1 WHERE {mine}")
        return "done"

    def _remote_rows(self, name: str) -> Row:
        """Return the remote steps of a job and their directives that are not out."""
        steps = self.subject.read(
            "select dimension, name, occurrence, state, ledger, attempt_no, lease_id, lease_expires_at"
            " from steps where job_id = ? and kind = 'remote'",
            name,
        )
        rows = self.subject.read(
            "select step_id, attempt_no, lease_id from outbox where job_id = ? and state = 'PENDING'", name
        )
        now = self.clock.wall_ms()
        return (
            tuple(
                sorted(
                    (f"{dimension}/{called}#{n}", *about, _due(at, now))
                    for dimension, called, n, *about, at in steps
                )
            ),
            tuple(sorted(tuple(row) for row in rows)),
        )


def page_of_remotes(book: Book) -> Row:
    """Return the remote steps of a job of the model in the words of the rows."""
    steps, directives = book.remotes
    return (
        tuple(
            sorted(
                (
                    each.step_id,
                    str(each.state),
                    each.ledger,
                    each.attempt_no,
                    each.lease_id,
                    _due(each.lease_expires_at, NOW),
                )
                for each in steps
            )
        ),
        tuple(sorted((row.step_id, row.attempt_no, row.lease_id) for row in directives)),
    )


def _due(at: int | None, now: int) -> int:
    return 0 if at is None else 1 if at <= now else 2
