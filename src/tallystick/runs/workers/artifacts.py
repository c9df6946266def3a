"""The files of a run: staged first, recorded in the log, then given their name.

A crash between record and name leaves the staged file, and the next resume finishes the move. A crash before
the record leaves a staged file that no record mentions, and the next resume removes it. So the name of an
artifact never shows content that the log does not know, unless another program wrote it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Final

from tallystick import crash
from tallystick.errors import ArtifactChanged, RunError, StorageFailed
from tallystick.log.folder import Folder
from tallystick.runs.log.snapshot import Artifact

ARTIFACTS: Final = "artifacts"
STAGED: Final = ".staged"

BEFORE_STAGING: Final = crash.declare(
    "artifact.stage.before", "a worker made an artifact that exists only in memory"
)
STAGED_SYNCED: Final = crash.declare(
    "artifact.stage.synced", "the artifact is staged, the log does not know it"
)
BEFORE_NAMING: Final = crash.declare(
    "artifact.name.before", "the log knows the artifact, its name does not show it"
)
NAMED: Final = crash.declare("artifact.name.done", "the artifact has its name")


class ArtifactFiles:
    """The artifacts of one run folder."""

    def __init__(self, folder: Folder, *, create: bool) -> None:
        """Open the folder of the artifacts; with `create`, make it first."""
        self._folder = folder.child(ARTIFACTS, create=create)
        self._staged = self._folder.child(STAGED, create=True) if create else None

    def close(self) -> None:
        """Give the descriptors back."""
        self._folder.close()
        if self._staged is not None:
            self._staged.close()

    def stage(self, name: str, data: bytes) -> str:
        """Put content on the disk under no name yet, and return its SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        crash.point(BEFORE_STAGING)
        self._stage_folder().write_new(_staged_name(name, digest), data)
        self._stage_folder().sync()
        crash.point(STAGED_SYNCED)
        return digest

    def unstage(self, name: str, digest: str) -> None:
        """Forget staged content that its worker has written anew."""
        self._stage_folder().discard(_staged_name(name, digest))

    def publish(self, name: str, digest: str) -> None:
        """Give staged content its name; does nothing when that has happened before."""
        crash.point(BEFORE_NAMING)
        staged = self._stage_folder()
        source = _staged_name(name, digest)
        if self.is_staged(name, digest):
            with self._folder.parent_of(name, create=True) as (parent, last):
                try:
                    parent.files.rename(source, last, directory=staged.descriptor, to=parent.descriptor)
                except OSError as error:
                    raise StorageFailed.of("rename", f"{parent.name}/{last}", error) from error
                parent.sync()
            staged.sync()
        crash.point(NAMED)

    def settle(
        self,
        index: Mapping[str, Artifact],
        *,
        keep: Collection[tuple[str, str]] = (),
        beside: Collection[str] = (),
    ) -> None:
        """Finish what a crash left half done: name what the log knows, remove what it does not.

        `keep` are the names and hashes of staged content that will be recorded yet, `beside` other files.
        """
        staged = self._stage_folder()
        for name, artifact in sorted(index.items()):
            if self.is_staged(name, artifact.sha256):
                self.publish(name, artifact.sha256)
        kept = {_staged_name(name, digest) for name, digest in keep} | set(beside)
        for leftover in staged.files.list(staged.descriptor):
            if leftover not in kept:
                staged.discard(leftover)

    def is_staged(self, name: str, digest: str) -> bool:
        """Return whether this content waits for its name."""
        return self._stage_folder().exists(_staged_name(name, digest))

    def put_beside(self, name: str, data: bytes) -> None:
        """Make a file durable beside the staged content."""
        self._stage_folder().replace(name, data)

    def drop_beside(self, name: str) -> None:
        """Remove a file beside the staged content; if a crash brings it back, it is removed again."""
        self._stage_folder().discard(name)

    def beside(self, prefix: str) -> list[tuple[str, bytes]]:
        """Return the files beside the staged content whose names begin like this."""
        staged = self._stage_folder()
        names = staged.files.list(staged.descriptor)
        return [(name, staged.read(name)) for name in names if name.startswith(prefix)]

    def digest(self, name: str) -> str:
        """Return the SHA-256 of what stands under a name now, or an empty text when nothing does."""
        return self._folder.sha256(name) if self._folder.exists(name) else ""

    def read(self, name: str, artifact: Artifact) -> bytes:
        """Return the content that the log recorded, or raise when the file holds something else by now."""
        data = self._folder.read(name)
        if hashlib.sha256(data).hexdigest() != artifact.sha256:
            raise ArtifactChanged(
                f"artifact {name} was changed while the run was on; resume the run", artifact=name
            )
        return data

    def _stage_folder(self) -> Folder:
        if self._staged is None:
            raise RunError("this run is open for reading only")
        return self._staged


def _staged_name(name: str, digest: str) -> str:
    return f"{hashlib.sha256(name.encode()).hexdigest()[:16]}-{digest}"
