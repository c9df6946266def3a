"""Children: workflows started by a workflow, joined in one wake-up however many there are."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, overload

from tallystick.app.replay.call_drivers import drive, drive_async
from tallystick.app.replay.calls import Call, Write
from tallystick.app.replay.context import WorkflowContext
from tallystick.app.replay.internal_writes import NO_BODY
from tallystick.app.replay.waits import Asked, ask, ask_async, in_turn, recall, workflow_context
from tallystick.app.running.tasks import has_begun_none
from tallystick.app.values.codec import Codec
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.limits import GROUP_CHILDREN_MAX, PAGE_ROWS_MAX
from tallystick.engine.failure import Failure, name_step
from tallystick.engine.segment_parts.group_shape import GroupShape
from tallystick.engine.submission import Submission
from tallystick.errors import (
    BadInput,
    ChildrenFailed,
    JobCancelled,
    JobFailed,
    Misuse,
    StoreError,
    TallyError,
)
from tallystick.store.api import Bundle, CancelJob, ChildRow, Group, JobRow, Record, Wait

R_co = TypeVar("R_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

SPAWN_CHILDREN_MAX = 500
# How many only children of recorded joins a replay reads at once.
_READ_AHEAD: Final = 64


class Callee(Protocol):
    """A workflow as its children see it."""

    @property
    def name(self) -> str:
        """Return the name by which workers know it."""
        ...

    def submission(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Submission:
        """Encode a call, as it becomes a job."""
        ...

    def result_codec(self) -> Codec:
        """Return how its result is read."""
        ...


class Child(Generic[R_co]):
    """A child that is prepared and starts when it is gathered; one of perhaps a hundred thousand."""

    __slots__ = ("_args", "_callee", "_kwargs")

    def __init__(self, callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Remember what to start; nothing is encoded or written before `gather` does, nor on replay."""
        self._callee = callee
        self._args = args
        self._kwargs = kwargs

    @property
    def submission(self) -> Submission:
        """Encode the call, as it becomes a job."""
        return self._callee.submission(self._args, self._kwargs)

    @property
    def handler(self) -> str:
        """Return the name of the workflow that runs it."""
        return self._callee.name

    def codec(self) -> Codec:
        """Return how its result is read."""
        return self._callee.result_codec()

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
        value: R_co = (await join_async(context, (self,), None, fail_fast=False))[0]
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
    return join(context, children, enough, fail_fast=fail_fast)


class _Joining(NamedTuple):
    """A group as this call of `gather` describes it."""

    group: Group
    shape: GroupShape
    children: Sequence[Child[Any]]
    asked: Asked | Record
    job_id: str

    @property
    def wait(self) -> Wait:
        return Wait("group", *self.group[1:], None)


class _Ended(NamedTuple):
    """What the children of a group came to, in their order."""

    results: tuple[Any, ...]
    errors: tuple[TallyError, ...]


def join(
    context: WorkflowContext, children: Sequence[Child[Any]], enough: int | None, *, fail_fast: bool
) -> tuple[Any, ...]:
    """Spawn in bounded bundles, wait for the closer, and read how every child ended."""
    joining = _joining(context, children, enough, fail_fast=fail_fast)
    if isinstance(joining.asked, Asked):
        births = drive(context, NO_BODY, _spawn(context, joining))
        if children:
            ask(context, joining.wait, births=births, read_after=not joining.shape.takes_all)
        drive(context, NO_BODY, _cancel(_going_on(context, joining)))
    return _results(joining, _ended(context, joining), all_of_them=enough is None)


async def join_async(
    context: WorkflowContext, children: Sequence[Child[Any]], enough: int | None, *, fail_fast: bool
) -> tuple[Any, ...]:
    """Do the same in a task, beside which others may wait."""
    joining = _joining(context, children, enough, fail_fast=fail_fast)
    ended: _Ended | None = None
    if isinstance(joining.asked, Asked):
        # Nobody suspends the workflow while children are being spawned, or read.
        with context.busy(str(joining.group)):
            births: Bundle = await drive_async(context, NO_BODY, _spawn(context, joining))
            if joining.shape.takes_all and _all_born(context, joining):
                # No child can change any more: read now, so that the answer and the end can share a flush.
                ended = await asyncio.to_thread(_ended, context, joining)
        if children:
            # Whoever ends before the group is joined still counts, unless all have ended anyway.
            await ask_async(context, joining.wait, births=births, read_after=not joining.shape.takes_all)
        if joining.shape.fail_fast:
            with context.busy(str(joining.group)):
                going_on = await asyncio.to_thread(_going_on, context, joining)
            await drive_async(context, NO_BODY, _cancel(going_on))
    else:
        await in_turn(context, joining.asked)
    if ended is None and context.children_read.get(_only_child(joining)) is not None:
        ended = _ended(context, joining)
    if ended is None:
        # A hundred thousand rows are read while the other tasks of the loop go on.
        with context.busy(str(joining.group)):
            ended = await asyncio.to_thread(_ended, context, joining)
    return _results(joining, ended, all_of_them=enough is None)


def _joining(
    context: WorkflowContext, children: Sequence[Child[Any]], enough: int | None, *, fail_fast: bool
) -> _Joining:
    shape = _shape(children, enough, fail_fast=fail_fast)
    asked = recall(context, "group", "gather")
    group = Group(context.segment.claimed.dimension, "gather", asked.occurrence)
    return _Joining(group, shape, children, asked, context.segment.job_id)


def _spawn(context: WorkflowContext, joining: _Joining) -> Call:
    """Write births in bounded bundles, and return the last one where it can be written with the wait."""
    children = joining.children
    if not children:
        context.calls.append((joining.group.name, joining.group.occurrence))
    if not children or _all_born(context, joining):
        return ()
    if context.cancel_raised:
        raise Misuse("a job that is being cancelled starts no children: clean up with steps")
    last = len(children) - 1 - (len(children) - 1) % SPAWN_CHILDREN_MAX
    for start in range(0, len(children), SPAWN_CHILDREN_MAX):
        some = [child.submission for child in children[start : start + SPAWN_CHILDREN_MAX]]
        births = context.segment.spawning(joining.group, some, start, joining.shape)
        if start == last and _waits_alone(context):
            return births
        if (yield Write(births, brings_work=True)):
            break  # all of them are there: an earlier segment has spawned them
    return ()


def _all_born(context: WorkflowContext, joining: _Joining) -> bool:
    """Tell whether the claim says that all are there: the group is closed, which takes all of them."""
    shape = joining.shape
    whole = shape.takes_all or shape.total <= SPAWN_CHILDREN_MAX
    return whole and context.segment.foretold(joining.wait) is not None


def _waits_alone(context: WorkflowContext) -> bool:
    """Tell whether nothing else of this workflow can happen before it waits for its children."""
    if not context.is_async:
        return True
    return has_begun_none(context, asyncio.get_running_loop())


def _going_on(context: WorkflowContext, joining: _Joining) -> list[CancelJob]:
    """Return what asks the children to end that go on after a failure; asking twice changes nothing."""
    if not joining.shape.fail_fast or not joining.children:
        return []
    return [
        CancelJob(row.job_id, CANCEL_GRACE_MS)
        for child, row in _matched(context, joining, _rows(context, joining.group))
        if not child.submission.detached and row.state not in JOB.final
    ]


def _cancel(going_on: list[CancelJob]) -> Call:
    for start in range(0, len(going_on), SPAWN_CHILDREN_MAX):
        yield Write(tuple(going_on[start : start + SPAWN_CHILDREN_MAX]))


def _shape(children: Sequence[Child[Any]], enough: int | None, *, fail_fast: bool) -> GroupShape:
    for child in children:
        if not isinstance(child, Child):
            raise Misuse(
                f"gather takes children, workflow.child(...), and no {type(child).__name__}: what a step "
                "returns is there already, and async steps run side by side with asyncio.gather"
            )
    total = len(children)
    if total > GROUP_CHILDREN_MAX:
        raise BadInput(f"a group has at most {GROUP_CHILDREN_MAX} children, not {total}; make several")
    if enough is not None and not 1 <= enough <= total:
        raise BadInput(f"enough={enough} of {total} children can never be right")
    return GroupShape(total, total - (total if enough is None else enough), fail_fast)


def _ended(context: WorkflowContext, joining: _Joining) -> _Ended:
    """Read how every child has ended that counts."""
    errors, results = [], []
    for child, row in _matched(context, joining, _read(context, joining)):
        if row.state == JobState.SUCCEEDED:
            results.append(child.codec().decode(row.result or "null", f"the result of {row.job_id}"))
        elif row.state in (JobState.FAILED_FINAL, JobState.CANCELLED):
            errors.append(_error(row))
    return _Ended(tuple(results), tuple(errors))


def _results(joining: _Joining, ended: _Ended, *, all_of_them: bool) -> tuple[Any, ...]:
    """Return what the children returned, or raise how they failed."""
    if ended.errors and all_of_them:
        failed = ChildrenFailed(ended.errors, len(joining.children))
        name_step(failed, joining.group.name, joining.group.occurrence)
        raise failed
    return ended.results


def _read(context: WorkflowContext, joining: _Joining) -> Iterable[ChildRow | JobRow]:
    """Read how the children of a group stand; a replay reads those of several joins of one child at once."""
    only = _only_child(joining)
    if only and only not in context.children_read:
        context.children_read = _read_ahead(context, joining)
    row = context.children_read.get(only)
    return _rows(context, joining.group) if row is None else (row,)


def _matched(
    context: WorkflowContext, joining: _Joining, rows: Iterable[ChildRow | JobRow]
) -> Iterator[tuple[Child[Any], ChildRow | JobRow]]:
    """Give each child with its row; where the group was started with other children, the job is held."""
    for index, (child, row) in enumerate(zip_longest(joining.children, rows)):
        if child is None or row is None or child.handler != row.handler:
            began = "none" if row is None else f"one of {row.handler}"
            now = "none" if child is None else f"one of {child.handler}"
            also = f"child {index} of gather#{joining.group.occurrence} was {began}, and now is {now}"
            raise context.mismatch(also=also)
        yield child, row


def _only_child(joining: _Joining) -> str:
    """Return the identifier of the one child that a recorded join has waited for; else an empty text."""
    recorded = isinstance(joining.asked, Record) and len(joining.children) == 1
    return joining.group.child_id(joining.job_id, 0) if recorded else ""


def _read_ahead(context: WorkflowContext, joining: _Joining) -> dict[str, JobRow | None]:
    """Read the first children of this recorded join and of those behind it."""
    assert isinstance(joining.asked, Record)
    records = context.segment.replayed
    start = bisect_left(records, joining.asked.n, key=lambda record: record.n)
    groups = (
        joining.group._replace(name=r.name, occurrence=r.occurrence)
        for r in records[start:]
        if r.kind == "group"
    )
    try:
        return context.runtime.store.finished(
            [group.child_id(joining.job_id, 0) for group in islice(groups, _READ_AHEAD)]
        )
    except StoreError as error:
        raise context.refused(error) from error


def _rows(context: WorkflowContext, group: Group) -> Iterator[ChildRow]:
    """Read how the children of a group stand, page by page, in their order."""
    store, job_id, after = context.runtime.store, context.segment.job_id, ""
    while True:
        try:
            page = store.children(job_id, group, after=after, limit=PAGE_ROWS_MAX)
        except StoreError as error:
            raise context.refused(error) from error
        yield from page
        if len(page) < PAGE_ROWS_MAX:
            return
        after = page[-1].job_id


def _error(row: ChildRow | JobRow) -> TallyError:
    if row.state == JobState.CANCELLED:
        return JobCancelled.of(f"child {row.job_id}", row.job_id, row.error_code)
    failure = Failure.parse(row.error) if row.error else None
    return JobFailed(
        f"child {row.job_id} failed: {row.error_message}",
        job_id=row.job_id,
        error_code=row.error_code,
        type=failure.type if failure else "",
        trace=failure.trace if failure else "",
    )
