"""One file, one SQLite library in a process.

POSIX drops all locks of a process on a file when it closes any descriptor of that file. Two SQLite
libraries in one process (apsw's and the standard library's `sqlite3`) do not know of each other's
descriptors, so one of them closing the file silently unlocks it for the other, and acknowledged
transactions are lost. The check of the database says ok.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tallystick.errors import TwoLibraries

# The file of every open connection of ours, by device and inode; a path may come to mean another file.
_opened: dict[int, tuple[int, int]] = {}
_hooked = False


def claim_file(path: Path) -> None:
    """Refuse if another library of this process holds the file, and refuse those that come later."""
    global _hooked  # noqa: PLW0603 (an audit hook is installed once in a process and cannot be removed)
    identity = _identity(path)
    if identity is not None and identity not in _opened.values() and _held_by_this_process(identity):
        raise TwoLibraries(
            f"{path} is already open in this process through another SQLite library; close it first, or keep "
            "your own tables in another file. Inside Tallystick use app.connect()",
            path=str(path),
        )
    if not _hooked:
        sys.addaudithook(_on_audit)
        _hooked = True


def remember(connection: object, path: Path) -> None:
    """Note that this process now has the file open through us."""
    identity = _identity(path)
    if identity is not None:
        _opened[id(connection)] = identity


def forget(connection: object) -> None:
    """Note that a connection is closed; after the last one the file is free for other libraries."""
    _opened.pop(id(connection), None)


def _on_audit(event: str, arguments: tuple[object, ...]) -> None:
    if event != "sqlite3.connect" or not _opened:
        return
    target = arguments[0] if arguments else None
    path = _path_of(target)
    if path is not None and _identity(path) in _opened.values():
        raise TwoLibraries(
            f"sqlite3.connect({str(path)!r}): Tallystick has this file open in this process, and a second "
            "SQLite library would drop its locks and lose transactions. Use app.connect(), or keep your "
            "tables in another file",
            path=str(path),
        )


def _path_of(target: object) -> Path | None:
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    if isinstance(target, os.PathLike):
        return Path(os.fsdecode(os.fspath(target)))
    if not isinstance(target, str) or target == ":memory:":
        return None
    return Path(unquote(urlsplit(target).path)) if target.startswith("file:") else Path(target)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _held_by_this_process(identity: tuple[int, int]) -> bool:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        return False
    return any(_identity(entry) == identity for entry in folder.iterdir())
