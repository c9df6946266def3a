"""What tests of stages share: a commit function that keeps books, and a look at what a stage left."""

from __future__ import annotations

from tallystick.core.lifecycles import SlotState
from tallystick.stage import CommitBatch, Stage


class Committed:
    """A commit function that keeps what it is given and checks the order itself."""

    def __init__(self) -> None:
        self.batches: list[CommitBatch] = []
        self.outcomes: list = []

    def __call__(self, batch: CommitBatch) -> None:
        assert batch.first == len(self.outcomes)
        self.batches.append(batch)
        self.outcomes += batch.outcomes

    @property
    def values(self) -> list[object]:
        return [outcome.value for outcome in self.outcomes]


def no_lease_is_left(stage: Stage) -> bool:
    flow = stage._flow
    assert flow is not None
    open_states = {SlotState.UNSEEN, SlotState.DISPATCHED, SlotState.IN_FLIGHT}
    return not any(set(window.sequence.states()) & open_states for window in flow._windows)
