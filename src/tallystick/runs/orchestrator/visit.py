"""The work of one visit of a state: what may begin, and in which order, derived from the log alone.

Work begins in the order in which it was queued. A process that takes over first takes up what was begun, in
the order in which that was begun.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tallystick.runs.definition.pipeline import Node
from tallystick.runs.log.events import EventType, ItemQueued
from tallystick.runs.log.fold import RunView, WorkKey
from tallystick.runs.log.recorder import Fact
from tallystick.runs.log.snapshot import WorkItem, WorkStatus
from tallystick.runs.tracing import Span
from tallystick.runs.workers.receipts import Receipt
from tallystick.runs.workers.work import Work


@dataclass(slots=True)
class Running:
    """A work item that a thread is at."""

    node: Node
    work_key: WorkKey
    work: Work
    span: Span
    # There is one when the worker has returned in an earlier process.
    receipt: Receipt | None = None
    kept: bool = False


@dataclass(slots=True)
class StateVisit:
    """The work of one visit of a state: which nodes may begin, and what is still to do."""

    state: str
    number: int
    waiting: list[tuple[Node, tuple[Node, ...]]]
    open_work: dict[str, set[WorkKey]] = field(default_factory=dict)
    ready: deque[tuple[Node, WorkKey]] = field(default_factory=deque)
    closed: bool = False

    def is_finished(self, node: Node) -> bool:
        """Return whether all work of a node is done."""
        return self.open_work.get(node.worker) == set()

    def queue_again(self, node: Node, work_key: WorkKey) -> None:
        """Make another attempt ready, unless nothing begins any more."""
        if not self.closed:
            self.ready.append((node, work_key))

    def close(self) -> None:
        """Let nothing begin any more: what has begun is brought to its end, and then the run ends."""
        self.closed = True
        self.waiting.clear()
        self.ready.clear()

    def sort(self, view: RunView) -> None:
        """Bring what is ready into its order: begun work as it was begun, then the rest as it was queued."""
        begun = {item_id: turn for turn, item_id in enumerate(view.item_spans)}
        queued = {item_id: turn for turn, item_id in enumerate(view.items)}

        def turn(ready: tuple[Node, WorkKey]) -> tuple[bool, int]:
            item_id = view.attempts[ready[1]]
            waits = view.items[item_id].status is WorkStatus.QUEUED
            return waits, (queued if waits else begun)[item_id]

        self.ready = deque(sorted(self.ready, key=turn))

    def spent(self, view: RunView) -> WorkItem | None:
        """Return the work item that failed first of those that have no try left, if there is one."""
        nodes = {node.worker: node for node, _ in self.waiting}
        for work_key, count in view.failures.items():
            item = view.items[view.attempts[work_key]]
            here = work_key.worker in nodes and (work_key.state, work_key.visit) == (self.state, self.number)
            if here and item.status is WorkStatus.FAILED and count >= nodes[work_key.worker].tries:
                return item
        return None

    def take_up_begun(self, view: RunView) -> None:
        """Make the work ready that was begun and not ended; nothing else begins any more."""
        nodes = [node for node, _ in self.waiting]
        self.close()
        for node in nodes:
            for work_key, item_id in view.attempts.items():
                here = (work_key.state, work_key.visit) == (self.state, self.number)
                if (
                    here
                    and work_key.worker == node.worker
                    and view.items[item_id].status is WorkStatus.RUNNING
                ):
                    self.ready.append((node, work_key))
                    self.open_work.setdefault(node.worker, set()).add(work_key)
        self.sort(view)


def needs_attempt(view: RunView, work_key: WorkKey) -> bool:
    """Return whether no attempt of this work is queued or running."""
    item_id = view.attempts.get(work_key)
    return item_id is None or view.items[item_id].status not in {WorkStatus.QUEUED, WorkStatus.RUNNING}


def queued(view: RunView, work_key: WorkKey) -> Fact:
    """Return the fact that the next attempt of this work is queued."""
    worker, scope_key = work_key.worker, work_key.scope_key
    attempt = view.attempts_used.get((worker, scope_key), 0) + 1
    item_id = ":".join(filter(None, (view.run_id, worker, str(attempt), scope_key)))
    payload = ItemQueued(item_id, worker, attempt, work_key.state, work_key.visit, scope_key)
    return EventType.WORK_ITEM_QUEUED, payload
