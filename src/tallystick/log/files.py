"""The system calls of the log in one place, so that a test can make any single one of them fail."""

from __future__ import annotations

import os

from tallystick.log.file_lock import try_lock

# Nothing here follows a symbolic link in the last part of a name, and no child process inherits a descriptor.
_ALWAYS = os.O_NOFOLLOW | os.O_CLOEXEC
# Some systems have only the stronger call.
_sync_data = getattr(os, "fdatasync", os.fsync)


class FileSystem:
    """The operating system, as far as the log needs it.

    Names are relative to `directory`, an open descriptor: a parent folder cannot be exchanged underneath.
    """

    def open(self, name: str, flags: int, *, directory: int | None = None, mode: int = 0o600) -> int:
        """Open a file without following a link; a new file belongs to its owner alone."""
        return os.open(name, flags | _ALWAYS, mode, dir_fd=directory)

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        os.close(descriptor)

    def read(self, descriptor: int, size: int, offset: int) -> bytes:
        """Return up to `size` bytes from `offset` on."""
        return os.pread(descriptor, size, offset)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write at the position of the descriptor and return how many bytes were taken."""
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        """Return when the file, or the entries of the folder, are on the disk."""
        os.fsync(descriptor)

    def sync_data(self, descriptor: int) -> None:
        """Return when the content of a file and its length are on the disk; its times may follow later."""
        _sync_data(descriptor)

    def truncate(self, descriptor: int, length: int) -> None:
        """Cut a file to `length` bytes."""
        os.ftruncate(descriptor, length)

    def size(self, descriptor: int) -> int:
        """Return the length of a file."""
        return os.fstat(descriptor).st_size

    def rename(self, old: str, new: str, *, directory: int, to: int | None = None) -> None:
        """Replace `new` by `old` in one step."""
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory if to is None else to)

    def unlink(self, name: str, *, directory: int) -> None:
        """Remove a file."""
        os.unlink(name, dir_fd=directory)

    def mkdir(self, name: str, *, directory: int | None = None) -> None:
        """Make a folder that belongs to its owner alone."""
        os.mkdir(name, 0o700, dir_fd=directory)

    def list(self, directory: int) -> tuple[str, ...]:
        """Return the names in a folder, sorted."""
        return tuple(sorted(os.listdir(directory)))

    def lock(self, descriptor: int) -> bool:
        """Take the exclusive lock of a file now or return False; it ends with the descriptor."""
        return try_lock(descriptor)
