"""The work of one visit of a state: what may begin, and in which order, derived from the log alone.

Work begins in the order in which it was queued. A process that takes over first takes up what was begun, in
the order in which that was begun.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tallystick.runs.fold import Duty, RunView
from tallystick.runs.pipeline import Node
from tallystick.runs.receipts import Receipt
from tallystick.runs.snapshot import WorkItem, WorkStatus
from tallystick.runs.tracing import Span
from tallystick.runs.work import Work


@dataclass(slots=True)
class Running:
    """A work item that a thread is at."""

    node: Node
    duty: Duty
    work: Work
    span: Span
    # There is one when the worker has returned in an earlier process.
    receipt: Receipt | None = None
    kept: bool = False


@dataclass(slots=True)
class Visit:
    """The work of one visit of a state: which nodes may begin, and what is still to do."""

    state: str
    number: int
    waiting: list[tuple[Node, tuple[Node, ...]]]
    open_duties: dict[str, set[Duty]] = field(default_factory=dict)
    ready: deque[tuple[Node, Duty]] = field(default_factory=deque)
    closed: bool = False

    def is_finished(self, node: Node) -> bool:
        """Return whether all work of a node is done."""
        return self.open_duties.get(node.worker) == set()

    def queue_again(self, node: Node, duty: Duty) -> None:
        """Make another attempt ready, unless nothing begins any more."""
        if not self.closed:
            self.ready.append((node, duty))

    def close(self) -> None:
        """Let nothing begin any more: what has begun is brought to its end, and then the run ends."""
        self.closed = True
        self.waiting.clear()
        self.ready.clear()

    def sort(self, view: RunView) -> None:
        """Bring what is ready into its order: begun work as it was begun, then the rest as it was queued."""
        begun = {item_id: turn for turn, item_id in enumerate(view.item_spans)}
        queued = {item_id: turn for turn, item_id in enumerate(view.items)}

        def turn(ready: tuple[Node, Duty]) -> tuple[bool, int]:
            item_id = view.attempts[ready[1]]
            waits = view.items[item_id].status is WorkStatus.QUEUED
            return waits, (queued if waits else begun)[item_id]

        self.ready = deque(sorted(self.ready, key=turn))

    def spent(self, view: RunView) -> WorkItem | None:
        """Return the work item that failed first of those that have no try left, if there is one."""
        nodes = {node.worker: node for node, _ in self.waiting}
        for duty, count in view.failures.items():
            item = view.items[view.attempts[duty]]
            here = duty.worker in nodes and (duty.state, duty.visit) == (self.state, self.number)
            if here and item.status is WorkStatus.FAILED and count >= nodes[duty.worker].tries:
                return item
        return None

    def take_up_begun(self, view: RunView) -> None:
        """Make the work ready that was begun and not ended; nothing else begins any more."""
        nodes = [node for node, _ in self.waiting]
        self.close()
        for node in nodes:
            for duty, item_id in view.attempts.items():
                mine = (duty.worker, duty.state, duty.visit) == (node.worker, self.state, self.number)
                if mine and view.items[item_id].status is WorkStatus.RUNNING:
                    self.ready.append((node, duty))
                    self.open_duties.setdefault(node.worker, set()).add(duty)
        self.sort(view)
