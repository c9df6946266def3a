"""What a run of a stage has, whatever its lanes are made of."""

from __future__ import annotations

from tallystick.stage.flow import Flow
from tallystick.stage.intake import Intake
from tallystick.stage.lanes.commit import CommitLane
from tallystick.stage.lanes.stop import Stop
from tallystick.stage.progress import ProgressDisplay
from tallystick.stage.settings import Settings


class LanesRun:
    """One run of a stage: its settings, its flow, and where its progress shows."""

    def __init__(
        self,
        settings: Settings,
        flow: Flow,
        intake: Intake,
        commit_lane: CommitLane,
        *,
        stop: Stop,
        progress: ProgressDisplay,
    ) -> None:
        self._settings = settings
        self._flow = flow
        self._intake = intake
        self._commit_lane = commit_lane
        self._stop = stop
        self._progress = progress
        self._clock = settings.clock
        self._as_json = settings.journal is not None
        self._input_error: Exception | None = None
        self._force_at_ms: int | None = None
        self._broken: BaseException | None = None
        self._over = False
        self._prepare()

    def _prepare(self) -> None:
        """Make what these lanes need besides."""
