"""Everything that an async workflow waits for at once, suspended in one bundle when nothing else can go on.

Tasks of a workflow park here. When all of them do, and no step runs beside them, the waits are asked for
together: the first that is answered goes on, or the job is suspended until one is. What was recorded is
released in the order in which it happened, so that a replay sees the same one come first.

The task factory of the loop counts the tasks that a workflow begins: only where it has begun some can
anything happen while its function waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from typing import Any, Final, Protocol

from tallystick.app.replay.context import WorkflowContext, current
from tallystick.app.replay.order import Turns
from tallystick.app.replay.waits import LOOKS_MAX, answered, patience_ms, publish_soon
from tallystick.app.running.leaving import Cancelled, Unwind
from tallystick.store.api import Answer, AskRemotes, Bundle, Outcome, Wait

# How many rounds of the loop nothing may happen before a workflow counts as still: one is enough for a task
# to begin, a few for tasks that wait for tasks. Where it has begun no tasks there is nothing to wait for.
_STILL_ROUNDS: Final = 12


class WriteBundle(Protocol):
    """How a bundle is made durable in a task of this workflow."""

    def __call__(
        self, context: WorkflowContext, bundle: Bundle, *, brings_work: bool
    ) -> Coroutine[Any, Any, Outcome]:
        """Write it behind everything that was handed over, and return its outcome."""
        ...


class TaskWaits:
    """The waits of one segment."""

    def __init__(self, context: WorkflowContext) -> None:
        """Begin with none."""
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._waits: dict[asyncio.Future[Answer], Wait] = {}
        self.turns = Turns(context.segment, self._loop)
        # Remote steps whose directives this segment has let out beside something else.
        self._asked: set[tuple[str, int]] = set()
        self._spawns: Bundle = ()
        self._write: WriteBundle | None = None
        self._rounds = 0
        self._deciding: asyncio.Task[None] | None = None

    async def answer(self, wait: Wait, spawns: Bundle, write: WriteBundle) -> Answer:
        """Return what answers this wait, or unwind; children spawned for it are durable with the question."""
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._waits[future] = wait
        self._spawns = spawns
        self._write = write
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(_heard)
        self.stir()
        try:
            return await future
        finally:
            self._waits.pop(future, None)

    async def in_turn(self, n: int) -> None:
        """Return when it is the turn of what was recorded at place `n`; here it was asked for."""
        if not self.turns.is_early(n):
            self.turns.look()
            return
        self._loop.call_soon(self.stir)
        await self.turns.come(n)

    def stir(self) -> None:
        """Something has happened: look again when nothing has for a while."""
        # A wait that has its answer belongs to a task that goes on, and stirs again when it waits again.
        if not self.turns and all(future.done() for future in self._waits):
            return
        alone = has_begun_none(self._context, self._loop)
        counting, self._rounds = self._rounds > 0, 1 if alone else _STILL_ROUNDS
        if not counting:
            self._loop.call_soon(self._round)

    async def settled(self) -> None:
        """Return when no decision is on its way any more."""
        if self._deciding is not None:
            await asyncio.wait([self._deciding])

    def abandon(self) -> None:
        """Let go of every task that still waits: the function has ended without them."""
        for waiting in list(self._waits):
            waiting.cancel()
        self.turns.abandon()

    def _round(self) -> None:
        self._rounds -= 1
        if self._rounds > 0:
            self._loop.call_soon(self._round)
            return
        if self._deciding is not None or not (self._waits or self.turns):
            return
        if self._context.in_flight:
            if not self.turns:
                self._ask_beside()
            return
        if self.turns:
            self.turns.let_first_go()
            self.stir()
            return
        # Not by the loop, which counts the tasks of the workflow.
        self._deciding = asyncio.Task(self._decide(), loop=self._loop)

    def _ask_beside(self) -> None:
        """Let directives out beside what goes on: a remote worker is not to wait for a step of ours."""
        was_opened, asked = self._context.segment.past.was_opened, self._asked
        open_ones = {
            (wait.name, wait.occurrence): wait for wait in self._waits.values() if wait.asks is not None
        }
        fresh = {at: wait for at, wait in open_ones.items() if at not in asked and not was_opened(at)}
        if fresh:
            asked.update(fresh)
            self._deciding = asyncio.Task(self._ask(tuple(fresh.values())), loop=self._loop)

    async def _ask(self, waits: tuple[Wait, ...]) -> None:
        context = self._context
        try:
            context.check()
            assert self._write is not None
            segment = context.segment
            asking = AskRemotes(segment.fence, segment.claimed.chain, segment.claimed.dimension, waits)
            await self._write(context, (*segment.decided(), asking), brings_work=False)
            publish_soon(context, waits)
        except (Unwind, Cancelled, Exception) as error:  # noqa: BLE001 (as in `_decide`)
            self._fail(error)
        finally:
            self._deciding = None
            self.stir()

    async def _decide(self) -> None:
        """Ask for an answer to any of the waits, and pass on what becomes of it."""
        context = self._context
        try:
            await stay_async(context, tuple(self._waits.values()))
            futures = [future for future in self._waits if not future.done()]
            if not futures or context.in_flight:
                return
            context.check()
            context.check_cancelled()
            waits = [self._waits[future] for future in futures]
            context.check_detour([(wait.name, wait.occurrence) for wait in waits])
            spawns, self._spawns = self._spawns, ()
            asked, alone = context.cancel_raised, is_alone(context)
            bundle = context.segment.awaiting(*waits, asked=asked, after=spawns, alone=alone)
            assert self._write is not None
            outcome = await self._write(context, bundle, brings_work=bool(spawns))
            publish_soon(context, waits)
            if isinstance(outcome, Answer):
                context.segment.answers.bring(waits[outcome.place], outcome)
            self._settle(futures, outcome)
        except (Unwind, Cancelled, Exception) as error:  # noqa: BLE001 (the waiting task must learn of it)
            self._fail(error)
        finally:
            self._deciding = None
            self.stir()

    def _settle(self, futures: list[asyncio.Future[Answer]], outcome: Outcome) -> None:
        context = self._context
        if isinstance(outcome, Answer):
            context.segment.leaving = False
            future = futures[outcome.place]
            if not future.done():
                future.set_result(outcome)
        elif outcome is None:
            names = ", ".join(f"{wait.name}#{wait.occurrence}" for wait in self._waits.values())
            self._fail(context.suspended(f"{names} is answered"))
        else:
            context.heed(outcome)

    def _fail(self, error: BaseException) -> None:
        for future in list(self._waits):
            if not future.done():
                future.set_exception(error)


async def stay_async(context: WorkflowContext, waits: Sequence[Wait]) -> None:
    """Hold this task until a wait may be answered, for as long as it is worth it."""
    seconds = patience_ms(context, waits) / 1000
    worker = context.runtime.worker
    if not seconds or worker is None:
        return
    came = asyncio.Event()
    loop = asyncio.get_running_loop()

    def listener() -> None:
        loop.call_soon_threadsafe(came.set)

    context.segment.listener = listener
    try:
        for _ in range(LOOKS_MAX):
            came.clear()
            if await asyncio.to_thread(answered, context, waits):
                return
            try:
                async with asyncio.timeout(seconds):
                    await came.wait()
            except TimeoutError:
                return
    finally:
        context.segment.listener = None


def task_waits_of(context: WorkflowContext) -> TaskWaits:
    """Return where the tasks of this workflow wait."""
    if context.task_waits is None:
        context.task_waits = TaskWaits(context)
        context.stirs = (*context.stirs, context.task_waits.stir)
    return context.task_waits


def _heard(task: asyncio.Task[Any]) -> None:
    """Hear how a task ended that waited here: when all unwind together, the workflow asks only one why."""
    if not task.cancelled():
        task.exception()


def watch(loop: asyncio.AbstractEventLoop) -> None:
    """Count the tasks that workflows on this loop begin, unless the loop has a task factory already."""
    if loop.get_task_factory() is None:
        loop.set_task_factory(_counted)


def has_begun_none(context: WorkflowContext, loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether the function is the only task of its workflow; False where that is not known."""
    return not context.tasks_begun and loop.get_task_factory() is _counted


def is_alone(context: WorkflowContext) -> bool:
    """Tell whether nothing of a workflow can happen beside its function; False where that is not known."""
    return not context.in_flight and has_begun_none(context, asyncio.get_running_loop())


def _counted(
    loop: asyncio.AbstractEventLoop,
    coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
    **options: Any,  # noqa: ANN401 (whatever this version of asyncio passes on)
) -> asyncio.Task[Any]:
    context = current.get()
    if type(context) is WorkflowContext:
        context.tasks_begun += 1
    return asyncio.Task(coro, loop=loop, **options)
