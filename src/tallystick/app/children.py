"""Children: workflows started by a workflow, joined in one wake-up however many there are."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar, overload

from tallystick.app.calls import Call, Write
from tallystick.app.context import WorkflowContext
from tallystick.app.driving import drive, drive_async
from tallystick.app.values import Codec
from tallystick.app.waits import NO_BODY, workflow_context
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.limits import GROUP_CHILDREN_MAX
from tallystick.engine.failure import Failure
from tallystick.engine.segment import GroupShape
from tallystick.engine.submission import Submission
from tallystick.errors import BadInput, ChildrenFailed, JobCancelled, JobFailed, TallyError
from tallystick.store.api import CancelJob, ChildRow, Group, Wait

R_co = TypeVar("R_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

SPAWN_CHILDREN_MAX = 500


class Child(Generic[R_co]):
    """A child that is prepared and starts when it is gathered."""

    def __init__(self, submission: Submission, codec: Callable[[], Codec]) -> None:
        """Remember what to start; nothing is written before `gather` does."""
        self.submission = submission
        self.codec = codec

    def result(self) -> R_co:
        """Start this child alone and wait for its result, in a sync workflow."""
        value: R_co = gather(self)[0]
        return value

    def __await__(self) -> Generator[Any, Any, R_co]:
        """Start this child alone and wait for its result, in an async workflow."""
        return self.joined().__await__()

    async def joined(self) -> R_co:
        """Start this child alone and return its result."""
        context = workflow_context("await", is_async=True)
        results = await drive_async(context, NO_BODY, join(context, (self,), None, fail_fast=False))
        value: R_co = results[0]
        return value


@overload
def gather(a: Child[A], /, *, fail_fast: bool = ...) -> tuple[A]: ...
@overload
def gather(a: Child[A], b: Child[B], /, *, fail_fast: bool = ...) -> tuple[A, B]: ...
@overload
def gather(a: Child[A], b: Child[B], c: Child[C], /, *, fail_fast: bool = ...) -> tuple[A, B, C]: ...
@overload
def gather(*children: Child[A], enough: int | None = ..., fail_fast: bool = ...) -> tuple[A, ...]: ...
def gather(*children: Child[Any], enough: int | None = None, fail_fast: bool = False) -> tuple[Any, ...]:
    """Start children together and wait for them: all, or `enough` of them, or until the first fails.

    Results come in the order of the children. When all have ended and some failed, `ChildrenFailed` carries
    every error.
    """
    context = workflow_context("gather", is_async=False)
    results: tuple[Any, ...] = drive(context, NO_BODY, join(context, children, enough, fail_fast=fail_fast))
    return results


def join(
    context: WorkflowContext, children: Sequence[Child[Any]], enough: int | None, *, fail_fast: bool
) -> Call:
    """Spawn in bounded bundles, wait for the closer, and read how every child ended."""
    context.check()
    segment = context.segment
    shape = _shape(children, enough, fail_fast=fail_fast)
    group = Group(segment.claimed.dimension, "gather", segment.number("gather"))
    record = segment.recall(group.name, group.occurrence)
    if record is None:
        context.check_cancelled()
        if segment.behind and not context.is_async:
            raise context.mismatch(group.name, group.occurrence)
        for start in range(0, len(children), SPAWN_CHILDREN_MAX):
            some = [child.submission for child in children[start : start + SPAWN_CHILDREN_MAX]]
            if (yield Write(segment.spawning(group, some, start, shape))):
                break  # all of them are there: an earlier segment has spawned them
        context.runtime.poke()
        if children:
            answer = yield Write(segment.awaiting(Wait("group", *group[1:], None)))
            context.heed(answer)
            if answer is None:
                raise context.unwind(f"suspended until {shape.total} children have ended", None)
        if fail_fast:
            yield from _cancel_siblings(context, group)
    elif record.kind != "group":
        raise context.mismatch(group.name, group.occurrence)
    context.calls.append((group.name, group.occurrence))
    return _results(context, children, group, all_of_them=enough is None)


def _cancel_siblings(context: WorkflowContext, group: Group) -> Call:
    """Ask the children to end that go on after the first failure; asking twice changes nothing."""
    now = context.runtime.clock.wall_ms()
    rows = context.runtime.store.children(context.segment.job_id, str(group))
    going_on = [CancelJob(row.job_id, now, CANCEL_GRACE_MS) for row in rows if row.state not in JOB.final]
    for start in range(0, len(going_on), SPAWN_CHILDREN_MAX):
        yield Write(tuple(going_on[start : start + SPAWN_CHILDREN_MAX]))


def _shape(children: Sequence[Child[Any]], enough: int | None, *, fail_fast: bool) -> GroupShape:
    total = len(children)
    if total > GROUP_CHILDREN_MAX:
        raise BadInput(f"a group has at most {GROUP_CHILDREN_MAX} children, not {total}; make several")
    if enough is not None and not 1 <= enough <= total:
        raise BadInput(f"enough={enough} of {total} children can never be right")
    return GroupShape(total, total - (total if enough is None else enough), fail_fast)


def _results(
    context: WorkflowContext, children: Sequence[Child[Any]], group: Group, *, all_of_them: bool
) -> tuple[Any, ...]:
    rows = context.runtime.store.children(context.segment.job_id, str(group)) if children else []
    errors = tuple(_error(row) for row in rows if row.state in (JobState.FAILED_FINAL, JobState.CANCELLED))
    if errors and all_of_them:
        raise ChildrenFailed(errors, len(children))
    done = [
        (child, row) for child, row in zip(children, rows, strict=True) if row.state == JobState.SUCCEEDED
    ]
    return tuple(
        child.codec().decode(row.result or "null", f"the result of {row.job_id}") for child, row in done
    )


def _error(row: ChildRow) -> TallyError:
    if row.state == JobState.CANCELLED:
        return JobCancelled(f"child {row.job_id} was cancelled", job_id=row.job_id)
    failure = Failure.parse(row.error) if row.error else None
    return JobFailed(
        f"child {row.job_id} failed: {row.error_message}",
        job_id=row.job_id,
        error_code=row.error_code,
        type=failure.type if failure else "",
        trace=failure.trace if failure else "",
    )
