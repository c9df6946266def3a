"""Open the folder of a run: check its log, and repair what a crash can have left.

A torn end is cut off and kept. Anything else that is wrong was not left by a crash: the log is set aside
untouched, and a new one records that the run has failed and why.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tallystick import crash
from tallystick.core.limits import check_name
from tallystick.errors import LogCorrupt, RunBusy, RunError, RunNotFound, StorageFailed
from tallystick.log.event import LogEvent
from tallystick.log.files import FileSystem
from tallystick.log.folder import Folder, release
from tallystick.log.reader import LogReader, Tail
from tallystick.runs.log.events import EdgeRecord, EventType, GraphRecord, RunCreated, Severity, StateMove
from tallystick.runs.log.fold import ImpossibleEvent, RunView, UnknownEvent
from tallystick.runs.log.recorder import LOG, SNAPSHOT, Fact
from tallystick.runs.log.snapshot import read_snapshot
from tallystick.runs.tracing import Span
from tallystick.runs.workers.work import make_issue

CORRUPT_PREFIX: Final = f"{LOG}.corrupt-"
TORN_PREFIX: Final = f"{LOG}.torn-"
MINIMAL_GRAPH: Final = GraphRecord(
    "CREATED", [EdgeRecord("CREATED", "FAILED"), EdgeRecord("CREATED", "CANCELLED")], ["FAILED", "CANCELLED"]
)

SET_ASIDE: Final = crash.declare("recovery.set_aside", "the corrupt log has its new name, no new log exists")


@contextmanager
def opened(
    root: str | os.PathLike[str], run_id: str, *, create: bool, files: FileSystem | None = None
) -> Iterator[Folder]:
    """Yield the folder of a run; without `create`, a run that is not there raises RunNotFound."""
    check_name("run id", run_id)
    with open_root(root, create=create, files=files) as base:
        if not create and not base.exists(run_id):
            raise RunNotFound(f"there is no run {run_id} in {os.fspath(root)!r}", run_id=run_id)
        with base.child(run_id, create=create) as folder:
            yield folder


def open_root(
    root: str | os.PathLike[str], *, create: bool = False, files: FileSystem | None = None
) -> Folder:
    """Open the folder that holds runs; without `create`, one that is not there raises RunNotFound."""
    try:
        return Folder.open(root, create=create, files=files)
    except StorageFailed as error:
        if create or error.errno not in {errno.ENOENT, errno.ENOTDIR}:
            raise
        where = os.fspath(root)
        raise RunNotFound(f"there is no folder {where!r} with runs in it", root=where) from error


@contextmanager
def locked(folder: Folder, run_id: str) -> Iterator[None]:
    """Hold the folder for one writer, or raise RunBusy at once."""
    with folder.locked() as held:
        if not held:
            raise RunBusy(
                f"another process is working on run {run_id}; wait for it, or cancel it", run_id=run_id
            )
        yield


def has_log(folder: Folder) -> bool:
    """Return whether there is a log at all."""
    return folder.exists(LOG)


def events(folder: Folder) -> Iterator[LogEvent]:
    """Yield the events of a log; raise LogCorrupt where it stops being believable."""
    descriptor = folder.open_file(LOG)
    try:
        yield from LogReader(folder.files, descriptor, f"{folder.name}/{LOG}")
    except OSError as error:
        raise StorageFailed.of("read", f"{folder.name}/{LOG}", error) from error
    finally:
        release(folder.files, descriptor)


def replay(folder: Folder, run_id: str, view: RunView | None = None) -> tuple[RunView, Tail]:
    """Fold the whole log; raise LogCorrupt when it is corrupt or tells an impossible story.

    A `view` that is passed in holds, after an error, what could be believed up to there.
    """
    view = view or RunView(run_id)
    if not has_log(folder):
        return view, Tail()
    descriptor = folder.open_file(LOG)
    try:
        reader = LogReader(folder.files, descriptor, f"{folder.name}/{LOG}")
        take = view.replay
        try:
            for event in reader:
                take(event)
        except ImpossibleEvent as error:
            raise LogCorrupt(f"{folder.name}/{LOG}", reader.tail.lines, str(error)) from error
        except UnknownEvent as error:
            raise RunError(f"run {run_id} was written by a newer version: {error}", run_id=run_id) from error
        except OSError as error:
            raise StorageFailed.of("read", f"{folder.name}/{LOG}", error) from error
    finally:
        release(folder.files, descriptor)
    return view, reader.tail


def lost_history(folder: Folder, view: RunView) -> str:
    """Return why a run without a believable log cannot begin either; an empty text if it never began."""
    if view.created:
        return ""
    if aside := _logs_aside(folder):
        return f"the corrupt log was set aside as {aside[-1]}"
    if folder.exists(SNAPSHOT):
        known = read_snapshot(folder.read(SNAPSHOT))
        valid = known is not None and known.run_id == view.run_id
        return f"there is {'a' if valid else 'an invalid'} snapshot and no log to make it from"
    return ""


def set_aside(folder: Folder) -> None:
    """Give a corrupt log a name of its own, untouched, so that a new one can begin."""
    if has_log(folder):
        number = len(_logs_aside(folder)) + 1
        folder.rename(LOG, f"{CORRUPT_PREFIX}{number:04d}-{folder.sha256(LOG)[:16]}")
    crash.point(SET_ASIDE)


def _logs_aside(folder: Folder) -> list[str]:
    """Return the names of the logs that were set aside, the latest last."""
    return [name for name in folder.files.list(folder.descriptor) if name.startswith(CORRUPT_PREFIX)]


def failure_facts(folder: Folder, view: RunView, salvaged: RunView, reason: str, span: Span) -> list[Fact]:
    """Return the facts that fail a run whose history is lost: created, blocker issue, failed."""
    graph = salvaged.graph if salvaged.created else MINIMAL_GRAPH
    facts: list[Fact] = []
    if not view.created:
        aside = _logs_aside(folder)[-1:]
        digest = folder.sha256(aside[0]) if aside else ""
        pipeline = salvaged.pipeline or "unknown"
        created = RunCreated(pipeline, graph, span.trace_id, span.span_id, digest, "".join(aside))
        facts.append((EventType.RUN_CREATED, created))
    issue = make_issue(
        "resume", Severity.BLOCKER, reason, error_code="SnapshotInvalid", issue_id="SnapshotInvalid"
    )
    facts.append((EventType.ISSUE_OPENED, issue))
    start = view.state if view.created else graph.start
    facts.append((EventType.RUN_STATE_CHANGED, StateMove(start, "FAILED", "SnapshotInvalid")))
    return facts
