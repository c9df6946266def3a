"""Commit outcomes in order: make them durable first, then hand them to the commit function.

1. The batch is appended to the journal and synced. From here on its items are never computed again.
2. The commit function is called, in order, one batch at a time.
3. The next line of the journal says that it returned.

A crash after 1 and before 3 is durable leaves one batch in doubt, which is handed over again unchanged.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tallystick import crash
from tallystick.stage.flow import Finished
from tallystick.stage.journal.journal import Journal
from tallystick.stage.lanes.compute import NOTHING, failure_json
from tallystick.stage.outcome import SUCCESS, CommitBatch
from tallystick.stage.summary import Summary

BEFORE_COMMIT: Final = crash.declare("stage.commit.before", "a batch is durable and not yet handed over")
AFTER_COMMIT: Final = crash.declare("stage.commit.after", "the commit function has returned")


class CommitLane:
    """Makes batches durable and keeps the books about them; the lanes call the commit function."""

    def __init__(self, journal: Journal | None, summary: Summary) -> None:
        self._journal = journal
        self._summary = summary

    def make_durable(self, found: list[Finished], started: int) -> CommitBatch[Any]:
        """Return the batch once its outcomes are in the journal for good."""
        batch: CommitBatch[Any] = CommitBatch(found[0].outcome.seq, tuple(one.outcome for one in found))
        if self._journal is not None:
            rows = [
                (
                    int(outcome.state),
                    outcome.attempts,
                    key,
                    msgspec.Raw(
                        (result.raw or NOTHING) if outcome.state is SUCCESS else failure_json(result.failure)
                    ),
                )
                for outcome, result, key in found
            ]
            self._journal.append_batch(batch.first, rows, started)
        crash.point(BEFORE_COMMIT)
        return batch

    def note_delivered(self, batch: CommitBatch[Any]) -> None:
        """Take note that the commit function has returned."""
        crash.point(AFTER_COMMIT)
        if self._journal is not None:
            self._journal.note_delivered(batch.end)
            self._summary.syncs = self._journal.syncs
        if batch.redelivered:
            self._summary.redelivered += len(batch.outcomes)
        else:
            self._summary.count(batch.outcomes)
