"""One open folder: checks names, writes durable files, and never reaches a file outside the folder.

Every part of a name is opened relative to its parent's descriptor without following links, so neither `..`
nor a planted link leads out. Files are 0600 and folders 0700.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from tallystick import crash
from tallystick.core.limits import check_name
from tallystick.errors import BadName, FolderUnsafe, StorageFailed
from tallystick.log.files import FileSystem

PARTS_MAX: Final = 8

TEMP_BEFORE: Final = crash.declare("folder.replace.before", "nothing of the new document is written")
TEMP_WRITTEN: Final = crash.declare("folder.replace.written", "the temporary file is written, not synced")
TEMP_SYNCED: Final = crash.declare(
    "folder.replace.synced", "the temporary file is on the disk, the old name still old"
)
RENAMED: Final = crash.declare(
    "folder.replace.renamed", "the new document has its name, the folder is not synced"
)
REPLACED: Final = crash.declare("folder.replace.done", "the new document and its name are on the disk")

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY


def check_path(kind: str, name: str) -> str:
    """Return a relative name such as `drafts/intro.md` if each of its parts is safe, or raise BadName."""
    parts = name.split("/")
    if len(parts) > PARTS_MAX:
        raise BadName(
            f"{name[:80]!a} cannot be a {kind}: it is nested deeper than {PARTS_MAX} folders", kind=kind
        )
    for part in parts:
        check_name(kind, part)
    return name


class Folder:
    """An open folder; close it, or use it in a `with` statement."""

    def __init__(self, descriptor: int, files: FileSystem, name: str) -> None:
        """Take over an open descriptor; see `Folder.open`."""
        self.descriptor = descriptor
        self.files = files
        self.name = name

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, create: bool = False, files: FileSystem | None = None
    ) -> Self:
        """Open a folder by a path that the user chose; with `create`, make it (and its parents) first.

        The path itself may lead through links: it is the user's own. Names below it may not.
        """
        try:
            if create:
                Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, _OPEN_FOLDER | os.O_CLOEXEC)
        except OSError as error:
            raise StorageFailed.of("open", os.fspath(path), error) from error
        return cls(descriptor, files or FileSystem(), os.fspath(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            release(self.files, descriptor)

    def child(self, part: str, *, create: bool = False) -> Folder:
        """Open a folder inside this one; with `create`, make it durable first if it is not there."""
        if create:
            with self.translated("mkdir", part), contextlib.suppress(FileExistsError):
                self.files.mkdir(part, directory=self.descriptor)
                self.files.fsync(self.descriptor)
        with self.translated("open", part):
            descriptor = self.files.open(part, _OPEN_FOLDER, directory=self.descriptor)
        return Folder(descriptor, self.files, f"{self.name}/{part}")

    @contextlib.contextmanager
    def parent_of(self, path: str, *, create: bool = False) -> Iterator[tuple[Folder, str]]:
        """Yield the folder that holds a relative name, and the last part of that name."""
        parts = path.split("/")
        with contextlib.ExitStack() as opened:
            here = self
            for part in parts[:-1]:
                here = opened.enter_context(here.child(part, create=create))
            yield here, parts[-1]

    def exists(self, path: str) -> bool:
        """Return whether there is something under this relative name, even if it cannot be read."""
        try:
            with self.parent_of(path) as (folder, name), folder.translated("stat", name):
                os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
        except StorageFailed as error:
            if error.errno != errno.ENOENT:
                raise
            return False
        return True

    def open_file(self, path: str, flags: int = os.O_RDONLY, *, create: bool = False) -> int:
        """Return a descriptor of a regular file; a link, a device or a pipe in its place is refused."""
        with self.parent_of(path, create=create) as (folder, name), folder.translated("open", name):
            # O_NONBLOCK keeps a planted pipe from hanging us before it can be refused.
            descriptor = self.files.open(name, flags | os.O_NONBLOCK, directory=folder.descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            release(self.files, descriptor)
            raise FolderUnsafe(
                f"{self.name}/{path} is not a regular file; remove it", path=f"{self.name}/{path}"
            )
        return descriptor

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        descriptor = self.open_file(path)
        try:
            with self.translated("read", path):
                return b"".join(chunks(self.files, descriptor))
        finally:
            release(self.files, descriptor)

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file in hexadecimal digits, without holding its content in memory."""
        descriptor = self.open_file(path)
        try:
            with self.translated("read", path):
                digest = hashlib.sha256()
                for piece in chunks(self.files, descriptor):
                    digest.update(piece)
        finally:
            release(self.files, descriptor)
        return digest.hexdigest()

    def replace(self, path: str, data: bytes) -> None:
        """Make `data` the durable content of a file; a reader sees the old or the new, never a mixture."""
        with self.parent_of(path, create=True) as (folder, name):
            temporary = f".{name}.new"
            crash.point(TEMP_BEFORE)
            try:
                folder.write_new(temporary, data)
                crash.point(TEMP_SYNCED)
                with folder.translated("rename", name):
                    self.files.rename(temporary, name, directory=folder.descriptor)
            except StorageFailed:
                folder.discard(temporary)
                raise
            crash.point(RENAMED)
            folder.sync()
            crash.point(REPLACED)

    def write_new(self, name: str, data: bytes) -> None:
        """Write a file of this folder and sync it; what stood under the name before is gone."""
        self.discard(name)
        with self.translated("write", name):
            descriptor = self.files.open(
                name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, directory=self.descriptor
            )
            try:
                write_all(self.files, descriptor, data)
                crash.point(TEMP_WRITTEN)
                self.files.fsync(descriptor)
            finally:
                release(self.files, descriptor)

    @contextlib.contextmanager
    def locked(self, name: str = "") -> Iterator[bool]:
        """Hold an exclusive lock inside the block; yield False when another process holds it.

        It is the lock of a file, or of the folder itself: that one cannot be removed and taken again. It ends
        with the block or with the process.
        """
        if name:
            descriptor = self.open_file(name, os.O_RDWR | os.O_CREAT)
        else:
            with self.translated("open", "."):
                descriptor = self.files.open(".", _OPEN_FOLDER, directory=self.descriptor)
        try:
            yield self.files.lock(descriptor)
        finally:
            release(self.files, descriptor)

    def rename(self, old: str, new: str) -> None:
        """Give a file of this folder another name, durably."""
        with self.translated("rename", old):
            self.files.rename(old, new, directory=self.descriptor)
        self.sync()

    def discard(self, name: str) -> None:
        """Remove a file of this folder if it is there."""
        with self.translated("unlink", name), contextlib.suppress(FileNotFoundError):
            self.files.unlink(name, directory=self.descriptor)

    def sync(self) -> None:
        """Make the names in this folder durable."""
        with self.translated("fsync", "."):
            self.files.fsync(self.descriptor)

    @contextlib.contextmanager
    def translated(self, call: str, name: str) -> Iterator[None]:
        """Turn a refusal of the file system inside the block into our error, with the name it is about."""
        try:
            yield
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR} and call == "open":
                where = f"{self.name}/{name}"
                raise FolderUnsafe(
                    f"{where} is a symbolic link or not a folder; remove it", path=where
                ) from error
            raise StorageFailed.of(call, f"{self.name}/{name}", error) from error


def release(files: FileSystem, descriptor: int) -> None:
    """Give a descriptor back; the descriptor is gone even if the file system complains."""
    try:
        files.close(descriptor)
    except OSError as error:
        raise StorageFailed.of("close", "a file", error) from error


def chunks(files: FileSystem, descriptor: int, *, size: int = 1 << 16, offset: int = 0) -> Iterator[bytes]:
    """Yield a file in pieces of bounded size."""
    while piece := files.read(descriptor, size, offset):
        offset += len(piece)
        yield piece


def write_all(files: FileSystem, descriptor: int, data: bytes) -> None:
    """Write every byte, however few of them one call takes."""
    taken = files.write(descriptor, data)
    while taken < len(data):
        more = files.write(descriptor, memoryview(data)[taken:])
        if more <= 0:
            raise OSError(errno.EIO, "the file system took no bytes")
        taken += more
