"""Look at a run without touching it: replay it, show it, verify it against its own log."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from tallystick.core.json_forms.canonical import canonical
from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.core.limits import check_name
from tallystick.errors import BadName, FolderUnsafe, LogCorrupt, RunNotFound, StorageFailed, TallyError
from tallystick.log.event import LINE_BYTES_MAX, LogEvent
from tallystick.log.folder import Folder, chunks, release
from tallystick.log.reader import Tail
from tallystick.runs.log import recovery
from tallystick.runs.log.fold import ImpossibleEvent, RunView, UnknownEvent
from tallystick.runs.log.recorder import LOG, SNAPSHOT
from tallystick.runs.log.snapshot import read_snapshot, snapshot_bytes
from tallystick.runs.orchestrator.staleness import changed_artifacts
from tallystick.runs.workers.artifacts import ARTIFACTS, ArtifactFiles

UNKNOWN: Final = "unknown"


@dataclass(slots=True)
class RunReport:
    """What a verification found: `problems` make a run unsound, `notes` are settled by a resume."""

    run_id: str
    events: int = 0
    run_state: str = ""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.problems


def load(root: str | os.PathLike[str], run_id: str) -> tuple[RunView, Tail]:
    """Return what the log of a run says; raise RunNotFound when it says nothing."""
    with recovery.opened(root, run_id, create=False) as folder:
        view, tail = recovery.replay(folder, run_id)
    if not view.created:
        raise RunNotFound(f"run {run_id} has no recorded events; start it again", run_id=run_id)
    return view, tail


def replay_bytes(root: str | os.PathLike[str], run_id: str) -> bytes:
    """Return the snapshot that the log of a run makes, byte for byte as it belongs on the disk."""
    return snapshot_bytes(load(root, run_id)[0].snapshot())


def events(root: str | os.PathLike[str], run_id: str) -> Generator[LogEvent, None, None]:
    """Yield the events of a run up to the first byte that cannot be believed."""
    with recovery.opened(root, run_id, create=False) as folder:
        if not recovery.has_log(folder):
            raise RunNotFound(f"run {run_id} has no recorded events; start it again", run_id=run_id)
        yield from recovery.events(folder)


def states(
    root: str | os.PathLike[str], *, after: str = "", limit: int | None = None
) -> list[tuple[str, str]]:
    """Return the id of every run in a folder with the state in its snapshot, sorted by id; or a page of them.

    What is no folder is no run. One that cannot be read is `unknown`, and hides no other.
    """
    found: list[tuple[str, str]] = []
    with recovery.open_root(root) as base:
        for name in base.files.list(base.descriptor):
            if len(found) == limit:
                break
            if name > after and is_name(name) and _is_folder(base, name):
                state = _state(base, name)
                found += [(name, state)] if state else []
    return found


def ends(root: str | os.PathLike[str], run_id: str) -> list[str]:
    """Return the states in which a run ends, its own and the common ones; none if its log does not say."""
    view = RunView(run_id)
    try:
        with closing(events(root, run_id)) as facts:
            for created in islice(facts, 1):
                view.replay(created)
    except (TallyError, ImpossibleEvent, UnknownEvent):
        return []
    return view.graph.final


def _is_folder(base: Folder, name: str) -> bool:
    """Return whether this is a folder, or a link to one: that is not followed, and yet not passed over."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=base.descriptor).st_mode)
    except OSError:
        return False


def _state(base: Folder, name: str) -> str:
    """Return the state of a run according to its snapshot, or nothing if there is no run."""
    try:
        if not base.exists(f"{name}/{LOG}"):
            return ""
        known = base.exists(f"{name}/{SNAPSHOT}")
        snapshot = read_snapshot(base.read(f"{name}/{SNAPSHOT}")) if known else None
    except (FolderUnsafe, StorageFailed):
        snapshot = None
    return snapshot.run_state if snapshot else UNKNOWN


def is_name(text: str) -> bool:
    """Return whether a name in the folder can be that of a run."""
    try:
        check_name("run id", text)
    except BadName:
        return False
    return True


def verify(root: str | os.PathLike[str], run_id: str) -> RunReport:
    """Check everything that can be checked: every byte of the log, the snapshot, and every artifact."""
    report = RunReport(run_id)
    with recovery.opened(root, run_id, create=False) as folder:
        view = RunView(run_id)
        try:
            _, tail = recovery.replay(folder, run_id, view)
        except LogCorrupt as error:
            report.problems.append(str(error))
            return report
        if not view.created:
            raise RunNotFound(f"run {run_id} has no recorded events; start it again", run_id=run_id)
        report.events, report.run_state = tail.lines, view.state
        if tail.torn:
            report.notes.append(f"the log ends in a torn line of {len(tail.torn)} bytes")
        if tail.needs_newline:
            report.notes.append("the last line of the log lacks its line feed")
        report.problems += _lines_not_canonical(folder, tail)
        _verify_snapshot(folder, view, report)
        _verify_artifacts(folder, view, report)
    return report


def _lines_not_canonical(folder: Folder, tail: Tail) -> list[str]:
    """Return a complaint for every line that is not byte for byte the canonical form of its event."""
    complaints: list[str] = []
    descriptor = folder.open_file(LOG)
    try:
        carry, number, length = b"", 0, 0
        for chunk in chunks(folder.files, descriptor):
            *whole, carry = (carry + chunk).split(b"\n")
            for line in whole:
                number += 1
                length += len(line) + 1
                if length <= tail.length and not _is_canonical(line):
                    complaints.append(f"{LOG} line {number}: not in canonical form")
    finally:
        release(folder.files, descriptor)
    return complaints


def _is_canonical(line: bytes) -> bool:
    try:
        return canonical(decode_strict(line, bytes_max=LINE_BYTES_MAX)) == line
    except TallyError:
        return False


def _verify_snapshot(folder: Folder, view: RunView, report: RunReport) -> None:
    if not folder.exists(SNAPSHOT):
        report.notes.append("there is no snapshot")
        return
    data = folder.read(SNAPSHOT)
    known = read_snapshot(data)
    if known is None:
        report.problems.append("snapshot.json is not a snapshot")
    elif known.run_id != view.run_id:
        report.problems.append(f"snapshot.json belongs to run {known.run_id}")
    elif data != snapshot_bytes(view.snapshot()):
        report.notes.append("snapshot.json is not what the log says; a resume replaces it")


def _verify_artifacts(folder: Folder, view: RunView, report: RunReport) -> None:
    digests: dict[str, str] = {}
    if folder.exists(ARTIFACTS):
        artifact_files = ArtifactFiles(folder, create=False)
        try:
            for name in sorted(view.artifacts):
                try:
                    digests[name] = artifact_files.digest(name)
                except FolderUnsafe as error:
                    report.problems.append(str(error))
        finally:
            artifact_files.close()
    changed, missing = changed_artifacts(view, digests)
    report.notes += [f"artifact {name} has changed since it was recorded" for name in changed]
    report.notes += [f"artifact {name} is missing" for name in missing]
    if view.ended:
        report.notes += [
            f"artifact {name} is stale; no work of the run makes it any more"
            for name, artifact in sorted(view.artifacts.items())
            if artifact.stale
        ]
