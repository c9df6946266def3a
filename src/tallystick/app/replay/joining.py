"""Groups of children as a workflow meets them: spawned in bundles, joined in one wake-up."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.app.replay.async_drivers import ask_async, drive_async, in_turn
from tallystick.app.replay.async_waits import has_begun_none
from tallystick.app.replay.call_drivers import NO_BODY, drive
from tallystick.app.replay.calls import Call, Write
from tallystick.app.replay.context import WorkflowContext
from tallystick.app.replay.waits import Asked, ask, recall
from tallystick.app.values.errors import rebuilt
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.limits import GROUP_CHILDREN_MAX, PAGE_ROWS_MAX
from tallystick.engine.failure import Failure, name_step
from tallystick.engine.segment_parts.group_shape import GroupShape
from tallystick.errors import (
    BadInput,
    ChildrenFailed,
    JobCancelled,
    JobFailed,
    Misuse,
    SlotsAreHeld,
    StoreError,
)
from tallystick.store.api import Bundle, CancelJob, ChildRow, Group, Record, Wait

if TYPE_CHECKING:
    from tallystick.app.replay.children import Child

SPAWN_CHILDREN_MAX: Final = 500
# How many only children of recorded joins a replay reads at once.
_READ_AHEAD: Final = 64
# One name for all groups: the identifiers of children are counted by it.
_GATHER: Final = "gather"
_GROUP: Final = "group"


class Wanted(NamedTuple):
    """When a parent goes on, and what it wants to hear of children that failed."""

    enough: int | None = None
    fail_fast: bool = False
    return_exceptions: bool = False
    alone: bool = False


class Joining(NamedTuple):
    """A group as this call of `gather` or `start` describes it."""

    group: Group
    shape: GroupShape
    children: Sequence[Child[Any]]
    asked: Asked | Record
    job_id: str
    wanted: Wanted

    @property
    def wait(self) -> Wait:
        """Return what the parent waits for."""
        return Wait("group", *self.group[1:], None)

    def child_id(self, index: int) -> str:
        """Return the identifier of a child."""
        return self.group.child_id(self.job_id, index)


class _Joined(NamedTuple):
    """What the children of a group came to, by their index and in their order; some may have to come yet."""

    results: dict[int, Any]
    errors: dict[int, Exception]


def join(context: WorkflowContext, children: Sequence[Child[Any]], wanted: Wanted) -> tuple[Any, ...]:
    """Spawn in bounded bundles, wait for the closer, and read how every child ended."""
    joining = _joining(context, children, wanted)
    if isinstance(joining.asked, Asked):
        spawns = drive(context, NO_BODY, _spawn(context, joining))
        if children:
            ask(context, joining.wait, spawns=spawns, read_after=not joining.shape.takes_all)
        drive(context, NO_BODY, _cancel(_going_on(context, joining)))
    return _results(joining, _ended(context, joining))


async def join_async(
    context: WorkflowContext, children: Sequence[Child[Any]], wanted: Wanted
) -> tuple[Any, ...]:
    """Do the same in a task, beside which others may wait."""
    joining = _joining(context, children, wanted)
    ended: _Joined | None = None
    if isinstance(joining.asked, Asked):
        # Nothing suspends the workflow while children are being spawned, or read.
        with context.busy(str(joining.group)):
            spawns: Bundle = await drive_async(context, NO_BODY, _spawn(context, joining))
            if joining.shape.takes_all and _all_spawned(context, joining):
                # No child can change any more: read now, so that the answer and the end can share a flush.
                ended = await asyncio.to_thread(_ended, context, joining)
        if children:
            # A child that ends before the group is joined still counts, unless all have ended anyway.
            await ask_async(context, joining.wait, spawns=spawns, read_after=not joining.shape.takes_all)
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
    return _results(joining, ended)


def opened(context: WorkflowContext, child: Child[Any]) -> Joining:
    """Return the group of one child that is started here; its record is asked for when it is waited for."""
    context.check()
    segment = context.segment
    group = Group(segment.claimed.dimension, _GATHER, segment.number(_GATHER))
    place = group[1:]
    record = segment.past.started(place)
    if record is None:
        context.check_cancelled()
        if not segment.past.was_opened(place) and context.has_skipped():
            raise context.mismatch(place)
    elif record.kind != _GROUP:
        raise context.mismatch(place)
    asked = Asked(context, _GROUP, *place) if record is None else record
    return Joining(group, GroupShape(1, 0, False), (child,), asked, segment.job_id, Wanted(alone=True))


def start_child(context: WorkflowContext, joining: Joining) -> Call:
    """Spawn a child that is started, unless it is there: its group is open or recorded."""
    place = joining.group[1:]
    if isinstance(joining.asked, Record) or context.segment.past.was_opened(place):
        return
    _check_starts(context)
    spawns = _spawn_some(context, joining, 0)
    context.heed((yield Write(spawns, brings_work=True)))


def joined(context: WorkflowContext, joining: Joining) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Wait for a child that was started before, and return its result."""
    if isinstance(_come_to(context, joining), Asked):
        ask(context, joining.wait)
    return _results(joining, _ended(context, joining))[0]


async def joined_async(context: WorkflowContext, joining: Joining) -> Any:  # noqa: ANN401 (as annotated)
    """Do the same in a task, beside which others may wait."""
    asked = _come_to(context, joining)
    if isinstance(asked, Asked):
        await ask_async(context, joining.wait)
    else:
        await in_turn(context, asked)
    with context.busy(str(joining.group)):
        ended = await asyncio.to_thread(_ended, context, joining)
    return _results(joining, ended)[0]


def _come_to(context: WorkflowContext, joining: Joining) -> Asked | Record:
    """Note that a started child is waited for now, in its order among the calls."""
    context.check()
    place = joining.group[1:]
    if isinstance(joining.asked, Record):
        context.segment.past.recall(_GROUP, *place)
        context.calls.append(place)
    else:
        context.check_cancelled()
        if context.has_skipped():
            raise context.mismatch(place)
    return joining.asked


def _joining(context: WorkflowContext, children: Sequence[Child[Any]], wanted: Wanted) -> Joining:
    shape = _shape(children, wanted)
    asked = recall(context, _GROUP, _GATHER)
    group = Group(context.segment.claimed.dimension, _GATHER, asked.occurrence)
    return Joining(group, shape, children, asked, context.segment.job_id, wanted)


def _spawn(context: WorkflowContext, joining: Joining) -> Call:
    """Spawn in bounded bundles, and return the last one where it can be written with the wait."""
    children = joining.children
    if not children:
        context.calls.append((joining.group.name, joining.group.occurrence))
    if not children or _all_spawned(context, joining):
        return ()
    _check_starts(context)
    last = len(children) - 1 - (len(children) - 1) % SPAWN_CHILDREN_MAX
    for start in range(0, len(children), SPAWN_CHILDREN_MAX):
        spawns = _spawn_some(context, joining, start)
        if start == last and _waits_alone(context):
            return spawns
        if (yield Write(spawns, brings_work=True)):
            break  # all of them are there: an earlier segment has spawned them
    return ()


def _spawn_some(context: WorkflowContext, joining: Joining, start: int) -> Bundle:
    """Return what spawns up to 500 children; none may wait for the slot that its parent holds."""
    some = [child.submission for child in joining.children[start : start + SPAWN_CHILDREN_MAX]]
    slot = context.segment.claimed.slot
    if slot is not None and slot.holds:
        for child in some:
            if child.queue == slot.queue and not child.detached:
                raise SlotsAreHeld(
                    f"a job in the queue {slot.queue} holds its slot while it waits, so {child.handler} must "
                    f"run in another one: write {child.handler}.opts(queue=...)",
                    queue=slot.queue,
                )
    return context.segment.spawning(joining.group, some, start, joining.shape)


def _check_starts(context: WorkflowContext) -> None:
    """Refuse to spawn in the clean-up of a job that is to end."""
    if context.cancel_raised:
        raise Misuse("a job that is being cancelled starts no children: clean up with steps")


def _all_spawned(context: WorkflowContext, joining: Joining) -> bool:
    """Tell whether the claim says that all are there: the group is closed, which takes all of them."""
    shape = joining.shape
    whole = shape.takes_all or shape.total <= SPAWN_CHILDREN_MAX
    return whole and context.segment.foretold(joining.wait) is not None


def _waits_alone(context: WorkflowContext) -> bool:
    """Tell whether nothing else of this workflow can happen before it waits for its children."""
    if not context.is_async:
        return True
    return has_begun_none(context, asyncio.get_running_loop())


def _going_on(context: WorkflowContext, joining: Joining) -> list[CancelJob]:
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


def _shape(children: Sequence[Child[Any]], wanted: Wanted) -> GroupShape:
    total, enough = len(children), wanted.enough
    if total > GROUP_CHILDREN_MAX:
        raise BadInput(f"a group has at most {GROUP_CHILDREN_MAX} children, not {total}; make several")
    if enough is not None and enough < 1:
        raise BadInput(f"enough={enough} must be at least 1")
    if enough is not None and enough > total:
        raise BadInput(f"enough={enough} is more than the {total} children")
    if wanted.fail_fast and wanted.return_exceptions:
        raise BadInput("fail_fast raises at the first failure, return_exceptions never: choose one of them")
    return GroupShape(total, total - (total if enough is None else enough), wanted.fail_fast)


def _ended(context: WorkflowContext, joining: Joining) -> _Joined:
    """Read how every child has ended that counts."""
    ended = _Joined({}, {})
    for index, (child, row) in enumerate(_matched(context, joining, _read(context, joining))):
        if row.state == JobState.SUCCEEDED:
            value = child.codec().decode(row.result or "null", f"the result of {row.job_id}")
            ended.results[index] = value
        elif row.state in (JobState.FAILED_FINAL, JobState.CANCELLED):
            ended.errors[index] = _error(child, row)
    return ended


def _results(joining: Joining, ended: _Joined) -> tuple[Any, ...]:
    """Return what the children returned, or raise how they failed."""
    wanted = joining.wanted
    if wanted.return_exceptions:
        both = ended.results | ended.errors
        return tuple(both[index] for index in sorted(both))
    if not ended.errors or wanted.enough is not None:
        return tuple(ended.results.values())
    first = next(iter(ended.errors.values()))
    declared = wanted.alone and not isinstance(first, JobFailed | JobCancelled)
    failed = first if declared else ChildrenFailed(ended.errors, ended.results, len(joining.children))
    name_step(failed, joining.group.name, joining.group.occurrence)
    raise failed


def _read(context: WorkflowContext, joining: Joining) -> Iterable[ChildRow]:
    """Read how the children of a group stand; a replay reads those of several joins of one child at once."""
    only = _only_child(joining)
    if only and only not in context.children_read:
        context.children_read = _read_ahead(context, joining)
    row = context.children_read.get(only)
    return _rows(context, joining.group) if row is None else (row,)


def _matched(
    context: WorkflowContext, joining: Joining, rows: Iterable[ChildRow]
) -> Iterator[tuple[Child[Any], ChildRow]]:
    """Give each child with its row; where the group was started with other children, the job is held."""
    for index, (child, row) in enumerate(zip_longest(joining.children, rows)):
        if child is None or row is None or child.handler != row.handler:
            began = "none" if row is None else f"one of {row.handler}"
            now = "none" if child is None else f"one of {child.handler}"
            also = f"child {index} of gather#{joining.group.occurrence} was {began}, and now is {now}"
            raise context.mismatch(also=also)
        yield child, row


def _only_child(joining: Joining) -> str:
    """Return the identifier of the one child that a recorded join has waited for; else an empty text."""
    recorded = isinstance(joining.asked, Record) and len(joining.children) == 1
    return joining.child_id(0) if recorded else ""


def _read_ahead(context: WorkflowContext, joining: Joining) -> dict[str, ChildRow | None]:
    """Read the first children of this recorded join and of those behind it; a fork has none of its own."""
    assert isinstance(joining.asked, Record)
    records = context.segment.claimed.records
    start = bisect_left(records, joining.asked.n, key=lambda record: record.n)
    groups = (
        joining.group._replace(name=r.name, occurrence=r.occurrence)
        for r in records[start:]
        if r.kind == "group"
    )
    children = [group.child_id(joining.job_id, 0) for group in islice(groups, _READ_AHEAD)]
    try:
        found = context.runtime.reads.finished_children(children)
    except StoreError as error:
        raise context.refused(error) from error
    return {child: found.get(child) for child in children}


def _rows(context: WorkflowContext, group: Group) -> Iterator[ChildRow]:
    """Read how the children of a group stand, page by page, in their order."""
    store, job_id, after = context.runtime.reads, context.segment.job_id, ""
    while True:
        try:
            page = store.children(job_id, group, after=after, limit=PAGE_ROWS_MAX)
        except StoreError as error:
            raise context.refused(error) from error
        yield from page
        if len(page) < PAGE_ROWS_MAX:
            return
        after = page[-1].job_id


def _error(child: Child[Any], row: ChildRow) -> Exception:
    if row.state == JobState.CANCELLED:
        return JobCancelled.of(f"child {row.job_id}", row.job_id, row.error_code)
    failure = Failure.parse(row.error) if row.error else None
    declared = None if failure is None else rebuilt(child.raises, failure)
    return declared or JobFailed(
        f"child {row.job_id} failed: {row.error_message}",
        job_id=row.job_id,
        error_code=row.error_code,
        type=failure.type if failure else "",
        trace=failure.trace if failure else "",
    )
