"""Record what happens to a run: append to the log, replace the snapshot, tell the listeners, in this order.

First the event is appended and synced, then the snapshot is replaced, then telemetry is told. A crash after
any of these loses only what the next resume makes again from the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tallystick import crash
from tallystick.clock import Clock
from tallystick.core.limits import clip_text
from tallystick.errors import StateTransitionError
from tallystick.log.event import Draft
from tallystick.log.folder import Folder
from tallystick.log.writer import LogWriter
from tallystick.runs.log.events import RETRACED, EventType, Payload, StateMove
from tallystick.runs.log.fold import RunView
from tallystick.runs.log.snapshot import snapshot_bytes
from tallystick.runs.tracing import Span

LOG: Final = "events.ndjson"
SNAPSHOT: Final = "snapshot.json"
# Up to this many entries the snapshot is replaced after every record; a larger one less often, so that the
# cost of all snapshots together stays proportional to the length of the log.
SNAPSHOT_ENTRIES_SMALL: Final = 100

BEFORE_SNAPSHOT: Final = crash.declare(
    "recorder.snapshot.before", "the events are on the disk, the snapshot is behind"
)
BEFORE_TELEMETRY: Final = crash.declare(
    "recorder.telemetry.before", "log and snapshot agree, telemetry knows nothing"
)
RECORDED: Final = crash.declare("recorder.done", "log, snapshot and telemetry agree")

logger = logging.getLogger("tallystick.runs")

Fact: TypeAlias = tuple[EventType, Payload]


@dataclass(frozen=True, slots=True)
class Recording:
    """Facts that have just become durable, with what the log added and what is known now."""

    view: RunView
    facts: Sequence[Fact]
    ts: str
    event_ids: Sequence[str]
    span: Span


Listener: TypeAlias = Callable[[Recording], None]
"""Told about facts after they are durable; what it raises is logged and otherwise ignored."""


class RunRecorder:
    """The open log of one run with what it says; the holder has the lock of the folder."""

    def __init__(
        self,
        folder: Folder,
        view: RunView,
        writer: LogWriter,
        span: Span,
        *,
        clock: Clock,
        listeners: Sequence[Listener] = (),
    ) -> None:
        """Go on from `view`; `span` is the span of this process's part of the run."""
        self.folder = folder
        self.view = view
        self.span = span
        self._writer = writer
        self._clock = clock
        self._listeners = tuple(listeners)
        self._unsaved = 0

    def close(self) -> None:
        """Give the log back."""
        self._writer.close()
        self.span.end("" if self.view.state != "FAILED" else "the run failed")

    def record(self, facts: Sequence[Fact], span: Span | None = None) -> None:
        """Make facts durable, fold them, and bring the snapshot up to date."""
        under = span or self.span
        drafts = [Draft(kind.value, payload, under.span_id, under.parent_span_id) for kind, payload in facts]
        appended = self._writer.append(drafts)
        for kind, payload in facts:
            self.view.apply(kind, payload, appended.ts)
        self._unsaved += len(facts)
        crash.point(BEFORE_SNAPSHOT)
        if self._is_due(facts):
            self.save()
        crash.point(BEFORE_TELEMETRY)
        recording = Recording(self.view, facts, appended.ts, appended.event_ids, under)
        for listener in self._listeners:
            self._tell(listener, recording)
        crash.point(RECORDED)

    def save(self) -> None:
        """Replace the snapshot by what the log says now."""
        self.folder.replace(SNAPSHOT, snapshot_bytes(self.view.snapshot()))
        self._unsaved = 0

    def move(self, target: str, reason: str = "", before: Sequence[Fact] = ()) -> None:
        """Take a legal step in the graph; an illegal one is recorded, logged and raised, and changes nothing.

        `before` are facts that belong to the step and go into the log right in front of it. A step that a
        rewind has taken back says so, so that a reader can tell the way from the way walked again.
        """
        view = self.view
        if not reason and view.retrace[:1] == [target]:
            reason = RETRACED
        payload = StateMove(view.state, clip_text(target, 128), reason)
        if not view.can_move(target):
            self.record([(EventType.INVALID_STATE_TRANSITION, payload)])
            logger.error("Invalid transition: %s → %s", payload.from_state, payload.to_state)
            legal = tuple(
                dict.fromkeys(edge.target for edge in view.graph.edges if edge.source == view.state)
            )
            raise StateTransitionError(
                view.pipeline,
                view.state,
                f"become {payload.to_state}",
                legal=legal,
                entity=view.run_id,
                at=self._clock.wall_ms() / 1000,
            )
        self.record([*before, (EventType.RUN_STATE_CHANGED, payload)])

    def _is_due(self, facts: Sequence[Fact]) -> bool:
        if any(kind is EventType.RUN_STATE_CHANGED for kind, _ in facts):
            return True
        entries = len(self.view.items) + len(self.view.artifacts) + len(self.view.issues)
        return self._unsaved * SNAPSHOT_ENTRIES_SMALL >= entries

    def _tell(self, listener: Listener, recording: Recording) -> None:
        try:
            listener(recording)
        except Exception:
            # A listener must not be able to stop a run; the log has the facts either way.
            logger.warning("a listener of run %s failed", self.view.run_id, exc_info=True)
