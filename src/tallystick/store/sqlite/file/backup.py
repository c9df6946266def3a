"""A copy of a file that is in use: whole as of one instant, and marked as a copy."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

from tallystick import crash
from tallystick.errors import BadInput, StoreReadOnly

COPY_ID: Final = 0x7A11_C099
"""The application id of a copy, until it is opened for the first time."""

_PAGES: Final = 2_048

COPIED = crash.declare("backup.copied", "a backup is whole and does not have its name")
PLACED = crash.declare("backup.after", "a backup has its name")


def back_up(source: apsw.Connection, target: Path) -> int:
    """Copy a database while others write to it, and return the size; a file that is there stays as it is.

    The copy has its name when it is whole and on the disk, or never.
    """
    if target.exists():
        raise BadInput(f"there is a file {target} already; name another one", path=str(target))
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        _copy(source, part)
        crash.point(COPIED)
        # A link, because a rename would replace what another process has put there meanwhile.
        os.link(part, target)
    except FileExistsError:
        raise BadInput(f"there is a file {target} already; name another one", path=str(target)) from None
    except (OSError, apsw.CantOpenError) as error:
        raise StoreReadOnly(f"{target} cannot be written: {error}", path=str(target)) from error
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(target.parent)
    crash.point(PLACED)
    return target.stat().st_size


def _copy(source: apsw.Connection, part: Path) -> None:
    os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(apsw.Connection(str(part))) as copy:
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
        # One file without a log beside it: that is what people copy further.
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.execute(f"PRAGMA application_id = {COPY_ID:d}")
    with part.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
