"""What runs meet: their declarations, their folders and their logs."""

from __future__ import annotations

from tallystick.errors.root import TallyError


class FolderError(TallyError):
    """A folder cannot be used as it is."""

    code = "FOLDER_ERROR"


class StorageFailed(FolderError):
    """The file system refused, and nothing was acknowledged."""

    code = "STORAGE_FAILED"
    http_status = 507

    def __init__(self, message: str = "", *, call: str = "", path: str = "", errno: int = 0) -> None:
        """Say which call failed on what, with the number the system gave."""
        self.call = call
        self.path = path
        self.errno = errno
        super().__init__(message, call=call, path=path, errno=errno)

    @classmethod
    def of(cls, call: str, path: str, error: OSError) -> StorageFailed:
        """Return the failure of one system call."""
        return cls(
            f"{call} of {path} failed: {error.strerror or error}",
            call=call,
            path=path,
            errno=error.errno or 0,
        )


class FolderUnsafe(FolderError):
    """This must be a plain file or folder, and is something else."""

    code = "FOLDER_UNSAFE"
    exit_code = 4


class LogCorrupt(FolderError):
    """The event log holds something that no writer can have left behind."""

    code = "LOG_CORRUPT"
    exit_code = 4

    def __init__(self, path: str, line: int, reason: str) -> None:
        """Say where the log stops making sense, and why."""
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(f"{path} line {line}: {reason}", path=path, line=line, reason=reason)


class RunError(TallyError):
    """A run cannot go on."""

    code = "RUN_ERROR"


class PipelineUnsound(RunError):
    """This pipeline cannot work as it is declared."""

    code = "PIPELINE_UNSOUND"
    exit_code = 4
    http_status = 422


class RunBusy(RunError):
    """Another process holds this run."""

    code = "RUN_BUSY"
    http_status = 409


class RunNotFound(RunError):
    """There is no such run."""

    code = "RUN_NOT_FOUND"
    exit_code = 4
    http_status = 404


class RunEnded(RunError):
    """The run has reached a final state, and final states have no exit."""

    code = "RUN_ENDED"
    exit_code = 4
    http_status = 409


class ArtifactChanged(RunError):
    """Another program wrote an artifact while the run was on; resume the run."""

    code = "ARTIFACT_CHANGED"


class RunFailed(RunError):
    """The run has failed; its log says why."""

    code = "RUN_FAILED"
    exit_code = 2


class SnapshotInvalid(RunError):
    """Neither the log nor the snapshot of this run can be trusted; the run has been failed."""

    code = "SNAPSHOT_INVALID"
