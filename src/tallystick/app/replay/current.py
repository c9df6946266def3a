"""What a running workflow or step can ask about the job that it belongs to."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from tallystick.app.replay.context import Inside, WorkflowContext
from tallystick.app.replay.context import current as _context
from tallystick.errors import Misuse, OutsideWorkflow
from tallystick.store.api import Group


class Current:
    """The job that this code runs for, and the step, as they stand at the moment of each question.

    A workflow may run again from its beginning: what it does must not hang on `attempt` or `deadline`.
    """

    __slots__ = ("_inside", "_workflow")

    def __init__(self, workflow: WorkflowContext, inside: Inside | None = None) -> None:
        """Look at the job of a workflow, from inside one of its steps or not."""
        self._workflow = workflow
        self._inside = inside

    def __repr__(self) -> str:
        step = "" if self._inside is None else f" {self._inside.name}#{self._inside.occurrence}"
        return f"<Current {self.job_id}{step}>"

    @property
    def job_id(self) -> str:
        """Return the identifier of the job."""
        return self._workflow.segment.job_id

    @property
    def workflow(self) -> str:
        """Return the name of the job's workflow."""
        return self._workflow.segment.claimed.handler

    @property
    def key(self) -> str | None:
        """Return the idempotency key that the job was submitted with, if any."""
        return self._workflow.segment.claimed.idempotency_key

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags that the job was submitted with."""
        tags = self._workflow.segment.claimed.tags
        return () if tags is None else tuple(msgspec.json.decode(tags))

    @property
    def attempt(self) -> int:
        """Return which attempt this is: 1 the first time that the job is claimed, more after each wait."""
        return self._workflow.segment.fence.attempt

    @property
    def parent_id(self) -> str | None:
        """Return the job that started this one, if a job did; a detached job keeps it too."""
        return self._workflow.segment.claimed.parent_job_id

    @property
    def root_id(self) -> str:
        """Return the job whose children, and their children, this one is among; else its own identifier.

        A job that was submitted inside a workflow begins a tree of its own, whatever its `parent_id` is.
        """
        return Group.root_of(self.job_id)

    @property
    def deadline(self) -> datetime | None:
        """Return when the job ends at the latest, in UTC, by the clock of this machine."""
        at = self._workflow.segment.deadline_at
        return None if at is None else datetime.fromtimestamp(at / 1000, tz=UTC)

    @property
    def name(self) -> str:
        """Return the name of the step that runs."""
        return self._step("name").name

    @property
    def occurrence(self) -> int:
        """Return which call of this step it is in the workflow: the first, the second, ..."""
        return self._step("occurrence").occurrence

    @property
    def try_number(self) -> int:
        """Return which try of this call it is: 1, or more after failures."""
        return self._step("try_number").tries + 1

    @property
    def idempotency_key(self) -> str:
        """Return what names this call of this step to others: the same for all its tries, and for no other.

        Give it to a service that should do something once, however often the step is tried.
        """
        step, segment = self._step("idempotency_key"), self._workflow.segment
        return f"{segment.job_id}:{segment.claimed.dimension}:{step.name}#{step.occurrence}"

    def _step(self, asked: str) -> Inside:
        if self._inside is None:
            raise Misuse(f"current().{asked} is about a step, and this is the workflow itself; ask in a step")
        return self._inside

    @property
    def cancelled(self) -> bool:
        """Tell whether this should stop: the job was asked to end, or runs elsewhere by now."""
        segment = self._workflow.segment
        return segment.cancelled or segment.lost

    def raise_if_cancelled(self) -> None:
        """Stop here if the job was asked to end, with `Cancelled`, or runs elsewhere by now.

        The workflow meets the same exception where it called the step, which is not recorded. What it does
        after that, its clean-up, is not stopped again.
        """
        segment = self._workflow.segment
        if segment.lost:
            self._workflow.check()
        cleans_up = self._workflow.cancel_raised if self._inside is None else self._inside.cleans_up
        if segment.cancelled and not cleans_up:
            raise self._workflow.cancelling()


def current() -> Current:
    """Return the job that this code runs for; outside of a workflow and its steps it is OutsideWorkflow."""
    context = _context.get()
    if isinstance(context, WorkflowContext):
        return Current(context)
    if isinstance(context, Inside) and context.context is not None:
        return Current(context.context, context)
    raise OutsideWorkflow(
        "current() was called where no job runs; in a thread of your own use tallystick.thread_map or "
        "contextvars.copy_context()"
    )
