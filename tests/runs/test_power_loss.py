"""The power fails at any moment: the disk holds only what was synced, and the run ends the same all the same.

`kill -9` cannot show a missing sync, because the page cache survives it. Here a shadow of the file system
keeps what a merciless disk would keep: file content as of the last sync of the file, names as of the last
sync of the folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from tallystick.log.files import FileSystem
from tallystick.runs.log.inspection import verify
from tallystick.runs.orchestrator.start import start_or_resume
from tests.runs.test_recovery import three_nodes
from tests.runs.worlds import around, events, fast_folder, history


class ShadowFiles(FileSystem):
    """The operating system, and beside it what of its work is on the disk."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.live: dict[int, bytes] = {}
        self.synced: dict[int, bytes] = {}
        self.names: dict[str, dict[str, int]] = {self.root: {}}
        self.synced_names: dict[str, dict[str, int]] = {self.root: {}}
        self.before_each = lambda: None

    def _path(self, descriptor: int) -> str:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())

    def open(self, name, flags, *, directory=None, mode=0o600):
        self.before_each()
        made = bool(flags & os.O_CREAT)
        descriptor = super().open(name, flags, directory=directory, mode=mode)
        if made:
            inode = os.fstat(descriptor).st_ino
            self.names.setdefault(self._path(directory), {})[name] = inode
            if not os.fstat(descriptor).st_size:
                self.live[inode] = b""
        return descriptor

    def write(self, descriptor, data):
        self.before_each()
        taken = super().write(descriptor, data)
        inode = os.fstat(descriptor).st_ino
        self.live[inode] = self.live.get(inode, b"") + bytes(data)[:taken]
        return taken

    def fsync(self, descriptor):
        self.before_each()
        super().fsync(descriptor)
        path, inode = self._path(descriptor), os.fstat(descriptor).st_ino
        if path in self.names:
            self.synced_names[path] = dict(self.names[path])
        else:
            self.synced[inode] = self.live[inode]

    def sync_data(self, descriptor):
        self.before_each()
        super().sync_data(descriptor)
        inode = os.fstat(descriptor).st_ino
        self.synced[inode] = self.live[inode]

    def rename(self, old, new, *, directory, to=None):
        self.before_each()
        super().rename(old, new, directory=directory, to=to)
        source = self.names[self._path(directory)]
        self.names.setdefault(self._path(directory if to is None else to), {})[new] = source.pop(old)

    def unlink(self, name, *, directory):
        self.before_each()
        super().unlink(name, directory=directory)
        self.names[self._path(directory)].pop(name, None)

    def mkdir(self, name, *, directory=None):
        self.before_each()
        super().mkdir(name, directory=directory)
        path = f"{self._path(directory)}/{name}"
        self.names[self._path(directory)][name] = -1
        self.names[path], self.synced_names[path] = {}, {}

    def image(self, *, torn: bool) -> dict[str, bytes | None]:
        """Return the files that the disk holds; `torn` adds half of what was written and not synced."""
        found: dict[str, bytes | None] = {}

        def add(folder: str) -> None:
            for name, inode in self.synced_names[folder].items():
                path = f"{folder}/{name}"
                if inode == -1:
                    found[path.removeprefix(self.root)] = None
                    add(path)
                    continue
                content, live = self.synced.get(inode, b""), self.live[inode]
                if torn and live.startswith(content):
                    content += live[len(content) :][: (len(live) - len(content)) // 2]
                found[path.removeprefix(self.root)] = content

        add(self.root)
        return found


def laid_out(image: dict[str, bytes | None], root: Path) -> None:
    for name, content in sorted(image.items()):
        path = root / name.removeprefix("/")
        if content is None:
            path.mkdir(mode=0o700)
        else:
            path.write_bytes(content)


def test_whatever_the_disk_keeps_nothing_acknowledged_is_lost_and_the_run_ends_the_same():
    """D01, D02. Every distinct image between two system calls of a run, plain and with torn ends."""
    acknowledged: list[str] = []
    images: dict[tuple, int] = {}
    with fast_folder() as root:
        shadow = ShadowFiles(root)

        def look() -> None:
            for torn in (False, True):
                key = tuple(sorted(shadow.image(torn=torn).items()))
                images[key] = max(images.get(key, 0), len(acknowledged))

        shadow.before_each = look
        listeners = (lambda recording: acknowledged.extend(recording.event_ids),)
        start_or_resume(
            three_nodes(), root, "r1", parallel=1, around=around("a", files=shadow, listeners=listeners)
        )
        expected, story = (root / "r1" / "snapshot.json").read_bytes(), history(root / "r1")
        look()
    assert len(images) >= 50
    for number, (image, known) in enumerate(images.items()):
        with fast_folder() as root:
            laid_out(dict(image), root)
            start_or_resume(three_nodes(), root, "r1", parallel=1, around=around(f"b{number}"))
            assert (root / "r1" / "snapshot.json").read_bytes() == expected
            assert history(root / "r1") == story
            assert set(acknowledged[:known]) <= {event["event_id"] for event in events(root / "r1")}
            assert verify(root, "r1").sound
