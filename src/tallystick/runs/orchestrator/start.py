"""Start a run, or resume it: open the folder, settle what the last process left, and drive on.

A resume compares everything with the log, and the log wins. It repeats nothing that is finished unless the
user says so or what it rested on has changed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from tallystick.clock import Clock, SystemClock
from tallystick.errors import (
    BadInput,
    LogCorrupt,
    PipelineUnsound,
    RunEnded,
    RunError,
    RunFailed,
    RunNotFound,
    SnapshotInvalid,
)
from tallystick.ids import Ids, SystemIds
from tallystick.log.files import FileSystem
from tallystick.log.folder import Folder, check_path
from tallystick.log.reader import Tail
from tallystick.log.writer import LogWriter, repair
from tallystick.runs.definition.pipeline import CANCELLED, FAILED, Pipeline
from tallystick.runs.log import recovery
from tallystick.runs.log.events import (
    ArtifactWritten,
    EventType,
    ResumeStarted,
    Rewind,
    RunCreated,
    TailRepaired,
)
from tallystick.runs.log.fold import RunView
from tallystick.runs.log.recorder import LOG, SNAPSHOT, Fact, Listener, RunRecorder
from tallystick.runs.log.snapshot import Snapshot, snapshot_bytes
from tallystick.runs.orchestrator import staleness
from tallystick.runs.orchestrator.orchestrator import CANCEL_REQUEST, Orchestrator, check_parallel
from tallystick.runs.tracing import start_span
from tallystick.runs.workers.artifacts import ArtifactFiles
from tallystick.runs.workers.receipts import Receipt, Receipts

logger = logging.getLogger("tallystick.runs")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run needs from outside: time, chance, the file system and listeners."""

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    files: FileSystem = field(default_factory=FileSystem)
    listeners: tuple[Listener, ...] = ()


@dataclass(frozen=True, slots=True)
class Redo:
    """What the user wants done again although it is finished."""

    items: tuple[str, ...] = ()
    from_state: str = ""


def start_or_resume(
    pipeline: Pipeline,
    root: str | os.PathLike[str],
    run_id: str,
    *,
    inputs: Mapping[str, bytes] | None = None,
    parallel: int = 4,
    redo: Redo | None = None,
    around: Surroundings | None = None,
    fresh: bool = False,
) -> Snapshot:
    """Start the run, or resume it, and return its last snapshot.

    A run that has ended well is returned as it is; one that was failed or cancelled raises. With `fresh`, a
    run that has begun before raises too. RunFailed carries the worker's exception as its cause.
    """
    around = around or Surroundings()
    if not _has_history(root, run_id, around.files):
        # What is refused here leaves nothing behind, not even a folder.
        check_parallel(parallel)
        _check_inputs(pipeline, inputs or {}, ())
    with open_run(root, run_id, around=around, pipeline=pipeline) as recorder:
        view = recorder.view
        if view.created and fresh:
            raise RunError(f"run {run_id} has begun before; resume it, or choose another id", run_id=run_id)
        if view.ended:
            return _ended(view, redo or Redo())
        _check_graph(view, pipeline)
        artifact_files = ArtifactFiles(recorder.folder, create=True)
        try:
            orchestrator = Orchestrator(recorder, pipeline, artifact_files, around.ids, parallel)
            kept = _prepare(recorder, pipeline, artifact_files, inputs or {}, redo or Redo())
            cause = orchestrator.drive(kept)
        finally:
            artifact_files.close()
        if view.state == FAILED:
            raise RunFailed(f"run {run_id} failed: {_blockers(view)}", run_id=run_id) from cause
        return view.snapshot()


@contextmanager
def open_run(
    root: str | os.PathLike[str],
    run_id: str,
    *,
    around: Surroundings | None = None,
    pipeline: Pipeline | None = None,
) -> Iterator[RunRecorder]:
    """Hold a run for writing: locked, replayed, repaired, its snapshot brought up to date.

    With a pipeline, a run that never began is given its folder; the caller records its creation.
    """
    around = around or Surroundings()
    create = pipeline is not None
    with (
        recovery.opened(root, run_id, create=create, files=around.files) as folder,
        recovery.locked(folder, run_id),
    ):
        salvaged = RunView(run_id)
        try:
            view, tail = recovery.replay(folder, run_id, salvaged)
        except LogCorrupt as error:
            recovery.set_aside(folder)
            _fail_lost_run(_recorder(folder, RunView(run_id), Tail(), around), salvaged, str(error))
        got_newline = tail.needs_newline
        repair(folder, LOG, tail)
        reason = recovery.lost_history(folder, view)
        if reason or (view.previous_log_sha256 and not view.ended):
            lost = reason or "the history of the run is lost"
            _fail_lost_run(_recorder(folder, view, tail, around), view, lost)
        recorder = _recorder(folder, view, tail, around)
        try:
            if view.created:
                _refresh_snapshot(recorder)
                if not view.ended:
                    _record_takeover(recorder, got_newline=got_newline)
            yield recorder
        finally:
            recorder.close()


def request_cancel(
    root: str | os.PathLike[str], run_id: str, *, around: Surroundings | None = None
) -> tuple[str, bool]:
    """Ask for a run to be cancelled; return its state, and whether it has ended.

    If another process works on the run, it has not: that process stops when its current work is done.
    """
    around = around or Surroundings()
    with recovery.opened(root, run_id, create=False, files=around.files) as folder:
        view, _ = recovery.replay(folder, run_id)
        if not view.created:
            raise RunError(f"run {run_id} has never begun", run_id=run_id)
        if view.ended:
            return view.state, True
        folder.replace(CANCEL_REQUEST, b"")
        with folder.locked() as idle:
            if not idle:
                return view.state, False
    with open_run(root, run_id, around=around) as recorder:
        if not recorder.view.ended:
            artifact_files = ArtifactFiles(recorder.folder, create=True)
            any_graph = Pipeline(recorder.view.pipeline, {"IDLE": "DONE"})
            Orchestrator(recorder, any_graph, artifact_files, around.ids, 1).end_cancelled()
            artifact_files.close()
        return recorder.view.state, True


def _recorder(folder: Folder, view: RunView, tail: Tail, around: Surroundings) -> RunRecorder:
    span = start_span(
        around.ids,
        f"run {view.run_id}",
        trace_id=view.trace_id,
        attributes={"tallystick.run_id": view.run_id},
    )
    writer = LogWriter(
        folder, LOG, tail, run_id=view.run_id, trace_id=view.trace_id or span.trace_id, clock=around.clock,
        ids=around.ids,
    )  # fmt: skip
    return RunRecorder(folder, view, writer, span, clock=around.clock, listeners=around.listeners)


def _fail_lost_run(recorder: RunRecorder, salvaged: RunView, reason: str) -> NoReturn:
    """Record that the run has failed because its history cannot be trusted, and raise SnapshotInvalid."""
    view = recorder.view
    try:
        if view.created:
            recorder.record([(EventType.RESUME_STARTED, ResumeStarted(recorder.span.span_id))])
        recorder.record(recovery.failure_facts(recorder.folder, view, salvaged, reason, recorder.span))
    finally:
        recorder.close()
    raise SnapshotInvalid(f"run {view.run_id} has been failed: {reason}", run_id=view.run_id, reason=reason)


def _refresh_snapshot(recorder: RunRecorder) -> None:
    """Replace a snapshot that is missing, invalid, behind, or of another run: the log wins."""
    folder = recorder.folder
    if folder.exists(SNAPSHOT) and folder.read(SNAPSHOT) == snapshot_bytes(recorder.view.snapshot()):
        return
    logger.info("the snapshot of run %s is not what its log says; it is made again", recorder.view.run_id)
    recorder.save()


def _record_takeover(recorder: RunRecorder, *, got_newline: bool) -> None:
    """Record that this process goes on with the run, and every torn end that no record mentions yet."""
    facts: list[Fact] = [(EventType.RESUME_STARTED, ResumeStarted(recorder.span.span_id))]
    folder, run_id = recorder.folder, recorder.view.run_id
    if got_newline:
        facts.append((EventType.RESUME_TAIL_REPAIRED, TailRepaired("newline", 1)))
    for name in folder.files.list(folder.descriptor):
        if name.startswith(recovery.TORN_PREFIX) and name not in recorder.view.repaired_tails:
            size = len(folder.read(name))
            facts.append((EventType.RESUME_TAIL_REPAIRED, TailRepaired("cut", size, name)))
            logger.warning("the log of run %s had a torn end of %d bytes, kept as %s", run_id, size, name)
    recorder.record(facts)


def _prepare(
    recorder: RunRecorder,
    pipeline: Pipeline,
    artifact_files: ArtifactFiles,
    inputs: Mapping[str, bytes],
    redo: Redo,
) -> dict[str, Receipt]:
    """Bring a new run to its start, or an old one to the point from which it goes on.

    Returns the receipts of work that has only to be recorded; none when the user wants work done again.
    """
    view = recorder.view
    kept: dict[str, Receipt] = {}
    if view.created:
        kept = Receipts(artifact_files).settle(view, believe=not (redo.items or redo.from_state))
        _mark_stale(recorder, artifact_files)
        _mark_redo(recorder, redo)
        _add_inputs(recorder, pipeline, artifact_files, inputs, [])
        _rewind(recorder, pipeline, redo)
    else:
        created = RunCreated(pipeline.name, pipeline.graph, recorder.span.trace_id, recorder.span.span_id)
        _add_inputs(recorder, pipeline, artifact_files, inputs, [(EventType.RUN_CREATED, created)])
    return kept


def _add_inputs(
    recorder: RunRecorder,
    pipeline: Pipeline,
    artifact_files: ArtifactFiles,
    inputs: Mapping[str, bytes],
    before: list[Fact],
) -> None:
    """Store the inputs that the user supplies; an input that the run has keeps its content."""
    facts = before
    _check_inputs(pipeline, inputs, recorder.view.artifacts)
    added: dict[str, str] = {}
    for name, content in sorted(inputs.items()):
        if name not in recorder.view.artifacts:
            added[name] = artifact_files.stage(name, content)
            payload = ArtifactWritten(name, f"artifacts/{name}", added[name], "input", "input")
            facts.append((EventType.ARTIFACT_WRITTEN, payload))
    if facts:
        recorder.record(facts)
    for name, digest in added.items():
        artifact_files.publish(name, digest)


def _check_inputs(pipeline: Pipeline, inputs: Mapping[str, bytes], known: Container[str]) -> None:
    """Raise BadInput for an input that no node reads, and for a required one that is missing."""
    for name, content in inputs.items():
        if not pipeline.takes(check_path("input", name)):
            raise BadInput(f"no node of {pipeline.name} reads {name!r}, or one of them makes it", input=name)
        # The program that supplies it may not be type-checked.
        if not isinstance(content, bytes | bytearray | memoryview):
            raise BadInput(f"the input {name} must be bytes, not {type(content).__name__}", input=name)
    missing = [name for name in pipeline.external_inputs() if name not in inputs and name not in known]
    if missing:
        raise BadInput(f"pipeline {pipeline.name} needs the input {', '.join(missing)}", missing=missing)


def _has_history(root: str | os.PathLike[str], run_id: str, files: FileSystem) -> bool:
    """Return whether this run was begun before, even if its log is lost."""
    try:
        with recovery.opened(root, run_id, create=False, files=files) as folder:
            return recovery.has_log(folder) or bool(recovery.lost_history(folder, RunView(run_id)))
    except RunNotFound:
        return False


def _mark_stale(recorder: RunRecorder, artifact_files: ArtifactFiles) -> None:
    """Compare every artifact with its file, and mark exactly what rests on the changed ones."""
    view = recorder.view
    changed, missing = staleness.changed_artifacts(
        view, {name: artifact_files.digest(name) for name in view.artifacts}
    )
    lost = [name for name in missing if name not in view.writers]
    if lost:
        raise RunError(f"the input {', '.join(lost)} of run {view.run_id} is gone; put it back", missing=lost)
    facts, late = staleness.invalidation(view, changed)
    facts += staleness.acceptance(view, changed)
    if facts:
        recorder.record([*facts, *late])
    again = staleness.regeneration(view, missing)
    if again:
        recorder.record(again)


def _mark_redo(recorder: RunRecorder, redo: Redo) -> None:
    """Mark what the user wants done again."""
    view = recorder.view
    facts = staleness.forced(view, redo.items)
    if facts:
        recorder.record(facts)
    if redo.from_state:
        if redo.from_state not in view.path:
            been = ", ".join(dict.fromkeys(view.path))
            raise BadInput(f"the run has not been in {redo.from_state[:80]}; it has been in {been}")
        facts = staleness.redone_from(view, _last_index(view.path, redo.from_state))
        if facts:
            recorder.record(facts)


def _rewind(recorder: RunRecorder, pipeline: Pipeline, redo: Redo) -> None:
    """Go back to the first unfinished work, and out of a state that must be entered from its start."""
    view = recorder.view
    here = len(view.path) - 1
    pending = [work_key for work_key in view.attempts if work_key not in view.done]
    index, reason = min(here, staleness.rewind_index(view.path, pending)), "stale"
    if redo.from_state and _last_index(view.path, redo.from_state) <= index:
        index, reason = _last_index(view.path, redo.from_state), "asked"
    rewinds, stable = pipeline.graph.rewinds, set(pipeline.graph.stable)
    if view.path[index] in rewinds:
        reason = "interrupted" if index == here else reason
        index = next((at for at in range(index, -1, -1) if view.path[at] in stable), 0)
    if index < here or reason == "asked":
        state = view.path[index]
        visit = view.path[: index + 1].count(state)
        logger.warning("run %s is rewound: %s → %s (%s)", view.run_id, view.state, state, reason)
        recorder.record([(EventType.RESUME_REWIND, Rewind(view.state, state, visit, reason))])


def _last_index(path: Sequence[str], state: str) -> int:
    return max(index for index, entered in enumerate(path) if entered == state)


def _check_graph(view: RunView, pipeline: Pipeline) -> None:
    """Refuse to go on with another graph than the one the run began with."""
    if not view.created:
        return
    same = view.graph.start == pipeline.graph.start and view.graph.edges == pipeline.graph.edges
    if not same or view.pipeline != pipeline.name:
        raise PipelineUnsound(
            f"run {view.run_id} began with another graph ({view.pipeline}); keep states and edges",
            run_id=view.run_id,
        )


def _ended(view: RunView, redo: Redo) -> Snapshot:
    if view.state in {FAILED, CANCELLED} or redo.items or redo.from_state:
        raise RunEnded(
            f"run {view.run_id} is {view.state}: {_blockers(view)}".rstrip(": "), run_id=view.run_id
        )
    return view.snapshot()


def _blockers(view: RunView) -> str:
    return "; ".join(issue.message for issue in view.snapshot().issues if issue.severity == "blocker")
