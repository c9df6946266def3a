"""A long log of a run whose state stays small: what the benchmark and the memory test replay."""

from __future__ import annotations

from tallystick.clock import SystemClock
from tallystick.ids import SystemIds
from tallystick.log.event import Draft
from tallystick.log.folder import Folder
from tallystick.log.reader import Tail
from tallystick.log.writer import LogWriter
from tallystick.runs.log.events import EventType, RunCreated, SectionMove, SectionState
from tallystick.runs.publishing import publishing

TRACE, SPAN = "a" * 32, "b" * 16
STATES = list(SectionState)


def created() -> Draft:
    return Draft(EventType.RUN_CREATED.value, RunCreated("publishing", publishing().graph, TRACE, SPAN), SPAN)


def moves(count: int) -> list[Draft]:
    """Return section moves round and round through all states: any number of them is a legal story."""
    return [
        Draft(
            EventType.SECTION_STATE_CHANGED.value,
            SectionMove(
                f"section-{number % 10}",
                STATES[number // 10 % len(STATES)],
                STATES[(number // 10 + 1) % len(STATES)],
            ),
            SPAN,
        )
        for number in range(count)
    ]


def write_log(root: str, run_id: str, count: int, batch: int = 10_000) -> None:
    """Write a log with `count` events besides the first."""
    with Folder.open(root, create=True) as base, base.child(run_id, create=True) as folder:
        writer = LogWriter(
            folder,
            "events.ndjson",
            Tail(),
            run_id=run_id,
            trace_id=TRACE,
            clock=SystemClock(),
            ids=SystemIds(),
        )
        writer.append([created()])
        # One round of all sections through all states; after it everything stands where it stood.
        round_of_moves = moves(10 * len(STATES))
        drafts = round_of_moves * (batch // len(round_of_moves) + 1)
        drafts = drafts[: len(drafts) // len(round_of_moves) * len(round_of_moves)]
        done = 0
        while done < count:
            part = drafts[: count - done]
            writer.append(part)
            done += len(part)
        writer.close()
