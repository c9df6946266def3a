"""A file system that fails on command."""

from __future__ import annotations

import os

from tallystick.log.files import FileSystem

CALLS = (
    "open", "read", "write", "fsync", "sync_data", "truncate", "rename", "unlink", "mkdir", "list", "close",
)  # fmt: skip


class FaultyFiles(FileSystem):
    """Fails the n-th call of one kind with an error number; `short` lets a failing write take half first."""

    def __init__(
        self, call: str = "", nth: int = 0, number: int = 0, *, short: bool = False, lasting=False
    ) -> None:
        self.armed = call
        self.nth = nth
        self.number = number
        self.short = short
        self.lasting = lasting
        self.counts = dict.fromkeys(CALLS, 0)
        self.fired = 0

    def _count(self, call: str) -> None:
        self.counts[call] += 1
        if self._hits(call):
            self.fired += 1
            raise OSError(self.number, os.strerror(self.number))

    def _hits(self, call: str) -> bool:
        seen = self.counts[call]
        return call == self.armed and (seen >= self.nth if self.lasting else seen == self.nth)

    def open(self, name, flags, *, directory=None, mode=0o600):
        self._count("open")
        return super().open(name, flags, directory=directory, mode=mode)

    def close(self, descriptor):
        # A failing close has given the descriptor back all the same.
        super().close(descriptor)
        self._count("close")

    def read(self, descriptor, size, offset):
        self._count("read")
        return super().read(descriptor, size, offset)

    def write(self, descriptor, data):
        if self.short and self.armed == "write" and self.counts["write"] + 1 == self.nth:
            super().write(descriptor, bytes(data)[: len(data) // 2])
        self._count("write")
        return super().write(descriptor, data)

    def fsync(self, descriptor):
        self._count("fsync")
        super().fsync(descriptor)

    def sync_data(self, descriptor):
        self._count("sync_data")
        super().sync_data(descriptor)

    def truncate(self, descriptor, length):
        self._count("truncate")
        super().truncate(descriptor, length)

    def rename(self, old, new, *, directory, to=None):
        self._count("rename")
        super().rename(old, new, directory=directory, to=to)

    def unlink(self, name, *, directory):
        self._count("unlink")
        super().unlink(name, directory=directory)

    def mkdir(self, name, *, directory=None):
        self._count("mkdir")
        super().mkdir(name, directory=directory)

    def list(self, directory):
        self._count("list")
        return super().list(directory)
