"""What a worker's function is given: its inputs, and the only ways to leave something behind.

Everything a worker makes counts when its work item is finished, all of it or nothing. A worker that is
interrupted is called again with the same inputs; effects outside the run folder are its own affair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from tallystick.core.limits import check_name, clip_text
from tallystick.errors import BadInput
from tallystick.log.folder import check_path
from tallystick.runs.definition import patterns
from tallystick.runs.log.events import (
    ArtifactWritten,
    Issue,
    IssueMove,
    IssueStatus,
    Location,
    SectionState,
    Severity,
)
from tallystick.runs.log.snapshot import Artifact
from tallystick.runs.workers.artifacts import ArtifactFiles


@dataclass(frozen=True, slots=True)
class SectionWish:
    """A section shall have this state; where it comes from is known when it is recorded."""

    section: str
    to_state: SectionState


class Work:
    """One work item in the hands of its worker."""

    def __init__(
        self,
        *,
        run_id: str,
        worker: str,
        attempt: int,
        scope_key: str,
        work_item_id: str,
        inputs: Mapping[str, Artifact],
        outputs: tuple[str, ...],
        artifact_files: ArtifactFiles,
        is_cancelled: Callable[[], bool],
    ) -> None:
        """Hold what the orchestrator decided; workers do not make these."""
        self.run_id = run_id
        self.worker = worker
        self.attempt = attempt
        self.scope = scope_key
        self.work_item_id = work_item_id
        self.inputs = tuple(inputs)
        self._index = inputs
        self._outputs = outputs
        self._artifact_files = artifact_files
        self._is_cancelled = is_cancelled
        self.made: dict[str, ArtifactWritten] = {}
        self.notes: list[Issue | IssueMove | SectionWish] = []

    @property
    def cancelled(self) -> bool:
        """Return whether the user has asked to cancel the run; a long worker may look and return early."""
        return self._is_cancelled()

    def read(self, name: str) -> bytes:
        """Return the content of a declared input; the run can track changes only of declared ones."""
        artifact = self._index.get(name)
        if artifact is None:
            have = ", ".join(self.inputs) or "none"
            raise BadInput(
                f"{self.worker} has no input {name!r}; declare it (now: {have})", worker=self.worker
            )
        return self._artifact_files.read(name, artifact)

    def read_text(self, name: str) -> str:
        """Return a declared input as text."""
        return self.read(name).decode()

    def read_json(self, name: str) -> object:
        """Return a declared input as a JSON value."""
        return msgspec.json.decode(self.read(name))

    def write(self, name: str, data: bytes | bytearray | memoryview | str, *, schema_id: str = "") -> None:
        """Make a declared output; it is there for others when the work item is finished."""
        check_path("artifact", name)
        if not any(patterns.matches(declared, name) for declared in self._outputs):
            raise BadInput(f"{self.worker} does not declare the output {name!r}", worker=self.worker)
        content = data.encode() if isinstance(data, str) else _as_bytes(name, data)
        digest = self._artifact_files.stage(name, content)
        if name in self.made and self.made[name].sha256 != digest:
            self._artifact_files.unstage(name, self.made[name].sha256)
        self.made[name] = ArtifactWritten(
            name,
            f"artifacts/{name}",
            digest,
            schema_id or _guessed_schema(name),
            self.worker,
            self.work_item_id,
        )

    def write_json(self, name: str, value: object, *, schema_id: str = "") -> None:
        """Make a declared output from a JSON value; equal values have equal bytes."""
        self.write(name, msgspec.json.encode(value, order="sorted") + b"\n", schema_id=schema_id)

    def section(self, section: str, state: SectionState) -> None:
        """Say how far a section has got."""
        self.notes.append(SectionWish(check_path("section", section), SectionState(state)))

    def open_issue(
        self,
        gate: str,
        severity: Severity | str,
        message: str,
        *,
        error_code: str = "",
        files: Iterable[str] = (),
        path: str = "",
        line: int = 0,
        suggested_fix: str = "",
        issue_id: str = "",
    ) -> str:
        """Report an issue and return its id, which is the same every time the same thing is reported."""
        issue = make_issue(
            gate, severity, message, error_code=error_code, files=files, path=path, line=line,
            suggested_fix=suggested_fix, issue_id=issue_id,
        )  # fmt: skip
        self.notes.append(issue)
        return issue.issue_id

    def take_issue(self, issue_id: str) -> None:
        """Say that an issue is being worked on."""
        self.notes.append(IssueMove(issue_id, IssueStatus.IN_PROGRESS))

    def resolve_issue(self, issue_id: str) -> None:
        """Say that an issue is settled."""
        self.notes.append(IssueMove(issue_id, IssueStatus.RESOLVED))

    def input_digests(self) -> dict[str, str]:
        """Return the hash of every input, by name."""
        return {name: artifact.sha256 for name, artifact in self._index.items()}

    def missing_outputs(self) -> tuple[str, ...]:
        """Return the declared outputs that were not made; a name with `*` promises nothing."""
        return tuple(name for name in self._outputs if "*" not in name and name not in self.made)


def make_issue(
    gate: str,
    severity: Severity | str,
    message: str,
    *,
    error_code: str = "",
    files: Iterable[str] = (),
    path: str = "",
    line: int = 0,
    suggested_fix: str = "",
    issue_id: str = "",
) -> Issue:
    """Return an issue whose id follows from its content, or raise BadInput when it is not complete."""
    try:
        level = Severity(severity)
    except ValueError as error:
        raise BadInput(f"{severity!r} is not a severity: use {', '.join(Severity)}") from error
    if level in {Severity.BLOCKER, Severity.ERROR} and not error_code:
        raise BadInput(f"an issue of severity {level} needs an error_code", gate=gate)
    text = clip_text(message)
    content = "\0".join((gate, level, error_code, path, str(line), text))
    return Issue(
        issue_id=check_name("issue", issue_id)
        if issue_id
        else hashlib.sha256(content.encode()).hexdigest()[:16],
        gate=clip_text(gate),
        severity=level,
        message=text,
        error_code=clip_text(error_code),
        files=[clip_text(name) for name in files],
        location=Location(clip_text(path), line) if path else None,
        suggested_fix=clip_text(suggested_fix),
    )


def _as_bytes(name: str, data: bytes | bytearray | memoryview) -> bytes:
    """Return the bytes of what a worker writes; `bytes` alone would make five zeros of a 5."""
    # The caller is the user's code, which no checker may have seen.
    if not isinstance(data, bytes | bytearray | memoryview):
        raise BadInput(
            f"{name} must be written as text or bytes, not as {type(data).__name__}; "
            "for a JSON value there is write_json",
            artifact=name,
        )
    return bytes(data)


def _guessed_schema(name: str) -> str:
    """Return a name for the kind of content when the worker gives none."""
    return f"file/{name.rpartition('.')[2]}" if "." in name else "file"
