"""The secrets that sign callbacks: from the environment, or from a file beside a SQLite file.

They are never in the database, so a copy of it does not let its owner report for a remote worker.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tallystick.core.remote.tokens import CallbackKeys, read_callback_keys
from tallystick.errors import BadCallbackKeys
from tallystick.ids import Ids

VARIABLE: Final = "TALLYSTICK_CALLBACK_KEYS"
_SUFFIX: Final = "-callback-keys"
_SQLITE: Final = "sqlite:///"
_BYTES_MAX: Final = 64 * 1024


def callback_keys(
    url: str, ids: Ids, environment: Mapping[str, str] = os.environ, *, create: bool = True
) -> CallbackKeys:
    """Return the keys of the store at this address (`Store.url`), or raise `BadCallbackKeys`.

    Beside a SQLite file the first process that needs keys makes them; those that begin together get the same.
    """
    told = environment.get(VARIABLE)
    if told:
        return read_callback_keys(told)
    if not url.startswith(_SQLITE):
        raise BadCallbackKeys(
            f"callbacks of remote workers need secrets, and several machines use {url}: set {VARIABLE} to "
            "KID:SECRET, the same for all of them"
        )
    path = Path(url.removeprefix(_SQLITE) + _SUFFIX)
    if create and not path.exists():
        _make(path, ids)
    return _read(path)


def _make(path: Path, ids: Ids) -> None:
    """Write a file of one key under its name at once, or leave the one that another process has written."""
    part = path.with_name(f"{path.name}.{ids.token()}")
    line = f"{ids.token()}:{ids.token()}{ids.token()}\n"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, path, follow_symlinks=False)
        except FileExistsError:
            return  # another process was first, and its keys count
        _sync_folder(path.parent)
    finally:
        part.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> CallbackKeys:
    """Return the keys of a file that belongs to us alone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise BadCallbackKeys(
            f"the keys for callbacks in {path} cannot be read: {error.strerror}; give the file back, or set "
            f"{VARIABLE}",
            path=str(path),
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise BadCallbackKeys(
                f"{path} holds secrets and others may open it: chmod 600 {path.name}", path=str(path)
            )
        text = file.read(_BYTES_MAX).decode("ascii", "replace")
    return read_callback_keys(text)
