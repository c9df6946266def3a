"""Queues with limits: declared by programs, changed and paused by people, kept over all processes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.app.api.control import act_on, noted
from tallystick.app.replay.context import refuse_inside
from tallystick.app.running.twins import twin_of
from tallystick.core.limits import PAGE_ROWS_MAX, check_name
from tallystick.core.queues.rows import Limits, Order, Queue, chosen, declared, paused, reset, resumed
from tallystick.core.watching.acts import PERSON, About, NoteAct
from tallystick.errors import BadInput, DuplicateHandler, NoSuchQueue, QueueChanged
from tallystick.store.api import Queues, SaveQueue

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime

_TRIES_MAX: Final = 20


class QueueView(NamedTuple):
    """What is known of a queue: its limits, those that a person has set, who paused it, its slots taken."""

    name: str
    limits: Limits
    chosen: dict[str, object]
    declared: bool
    paused_by: str | None
    paused_at: datetime | None
    running: int


class Queued:
    """The queues of a store that have limits: look after them here, or with `tally queues`."""

    def __init__(self, runtime: Callable[[], Runtime]) -> None:
        """Open nothing yet."""
        self._runtime = runtime

    def get(self, name: str) -> QueueView:
        """Return one queue."""
        return self._view(self._seen(name))

    def all(self) -> list[QueueView]:
        """Return all queues that have a row, by name; any other has no limits and is not paused."""
        store, found, after = self._store(), list[Queue](), ""
        while page := store.queues(after=after, limit=PAGE_ROWS_MAX):
            found += page
            after = page[-1].queue
        return [self._view(row) for row in found]

    def set(self, name: str, *, by: str = PERSON, **limits: Any) -> QueueView:  # noqa: ANN401 (each limit has its own type; the core checks)
        """Set some limits of a queue, None for no limit; they win over those of programs until `reset`."""
        check_name("queue", name)
        told = ", ".join(f"{limit}={value}" for limit, value in limits.items())
        act = act_on(About.QUEUE, name, "set", by, told)
        return self._changed(name, lambda seen, now: chosen(seen, name, limits, now), act)

    def pause(self, name: str, *, by: str = PERSON) -> QueueView:
        """Let no job of a queue be claimed until it is resumed, woken ones neither.

        What runs goes on; cancelling and deadlines too.
        """
        check_name("queue", name)
        act = act_on(About.QUEUE, name, "pause", by)
        return self._changed(name, lambda seen, now: paused(seen, name, by, now), act)

    def resume(self, name: str, *, by: str = PERSON) -> QueueView:
        """Let jobs of a queue be claimed again."""
        if self._store().queue(name) is None:
            text = f"the queue {name} is not paused, and no limits were declared or set for it"
            raise NoSuchQueue(text, queue=name)
        return self._moved(name, resumed, act_on(About.QUEUE, name, "resume", by))

    def reset(self, name: str, *, by: str = PERSON) -> QueueView:
        """Let what programs declare count again."""
        return self._moved(name, reset, act_on(About.QUEUE, name, "reset", by))

    get_aio = twin_of(get)
    all_aio = twin_of(all)  # noqa: A003 (the method above)

    async def set_aio(self, name: str, *, by: str = PERSON, **limits: Any) -> QueueView:  # noqa: ANN401 (as `set`)
        """Set some limits of a queue without blocking the loop; as `set` in all else."""
        return await asyncio.to_thread(self.set, name, by=by, **limits)

    pause_aio = twin_of(pause)
    resume_aio = twin_of(resume)
    reset_aio = twin_of(reset)

    def declare(self, name: str, limits: Limits) -> None:
        """Keep what a program declares about a queue."""
        self._change(name, lambda seen, now: declared(seen, name, limits, now))

    def _store(self) -> Queues:
        refuse_inside("look after queues")
        store = self._runtime().store
        if not isinstance(store, Queues):
            raise BadInput(f"{store.url} keeps no limits of queues; SQLite and PostgreSQL do")
        return store

    def _seen(self, name: str) -> Queue:
        found = self._store().queue(name)
        if found is None:
            raise NoSuchQueue(f"no limits were declared or set for the queue {name}", queue=name)
        return found

    def _moved(self, name: str, change: Callable[[Queue], Queue], act: tuple[NoteAct, ...]) -> QueueView:
        return self._changed(name, lambda seen, _now: change(self._seen(name) if seen is None else seen), act)

    def _changed(
        self, name: str, change: Callable[[Queue | None, int], Queue | None], act: tuple[NoteAct, ...]
    ) -> QueueView:
        self._change(name, change, act)
        return self.get(name)

    def _change(
        self, name: str, change: Callable[[Queue | None, int], Queue | None], act: tuple[NoteAct, ...] = ()
    ) -> None:
        """Put what a change makes of a queue in its place; again if others were faster."""
        store, runtime = self._store(), self._runtime()
        for _ in range(_TRIES_MAX):
            seen = store.queue(name)
            row = change(seen, runtime.store.now())
            if row is None or row == seen:
                return
            saved = SaveQueue(row, None if seen is None else seen.rev)
            (outcome,) = runtime.committer.call_all([noted((saved,), act, store)])
            if outcome is None:
                runtime.poke()
                return
            if isinstance(outcome, BaseException) and not isinstance(outcome, QueueChanged):
                raise outcome
        raise QueueChanged(queue=name)

    def _view(self, row: Queue) -> QueueView:
        paused_at = None if row.paused_at is None else datetime.fromtimestamp(row.paused_at / 1000, UTC)
        running = len(self._store().taken_slots(row.queue))
        about = (row.limits, row.set_by_person, row.declared is not None)
        return QueueView(row.queue, *about, row.paused_by, paused_at, running)


class DeclaringQueues(ABC):
    """What a Tally knows of queues."""

    _queues: dict[str, Limits]

    @abstractmethod
    def runtime(self, *, create: bool = True) -> Runtime:
        """Return the open store; a Tally opens it on first use."""

    @property
    def queues(self) -> Queued:
        """Return the queues of the store that have limits, those that others set too."""
        return Queued(self.runtime)

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        per_key: int | None = None,
        rate: str | None = None,
        burst: int = 1,
        key_rate: str | None = None,
        worker_concurrency: int | None = None,
        order: Order = "priority",
        hold_slots: bool = False,
    ) -> None:
        """Declare the limits of a queue, over all processes and machines; in force when a worker starts.

        `concurrency` is how many of its jobs run at once, `per_key` how many with one `limit_key`, and
        `worker_concurrency` how many in one worker. `rate` is how many begin, as "100/1m", `key_rate` how
        many with one key, and a `burst` of them may begin at once. A job that waits has no slot, unless the
        queue has `hold_slots`.
        """
        check_name("queue", name)
        if name in self._queues:
            raise DuplicateHandler(f"the queue {name!r} is declared already; declare it once", name=name)
        limits = Limits(
            concurrency=concurrency,
            per_key=per_key,
            worker_concurrency=worker_concurrency,
            rate=rate,
            key_rate=key_rate,
            burst=burst,
            order=order,
            hold_slots=hold_slots,
        )
        self._queues[name] = limits.checked()

    def declare_queues(self) -> frozenset[str]:
        """Put the declared limits in force; a worker does it when it starts."""
        for name, limits in self._queues.items():
            self.queues.declare(name, limits)
        return frozenset(self._queues)
