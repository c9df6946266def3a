"""What is found on a disk after a power cut, opened by the real store: is all there that users were told?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tallystick.clock import SystemClock
from tallystick.engine.audit import audit
from tallystick.errors import StoreError
from tallystick.store.sqlite.store import SqliteStore
from tests.power_loss.disk import Image
from tests.power_loss.recorder import Ack

CLOCK = SystemClock()


def laid_out(image: Image, folder: Path) -> Path:
    """Write the files of an image, in the place of those that were there."""
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    for name, content in image.items():
        (folder / name).write_bytes(content)
    return folder / "books.db"


def looked_at(path: Path, acks: Sequence[Ack], *, books: bool = True) -> tuple[list[str], list[str]]:
    """Return what of the acknowledged is lost, and with `books` also what is broken."""
    if not path.exists():
        return [f"there is no file, and {ack}" for ack in acks[:1]], []
    try:
        store = SqliteStore(path, CLOCK)
    except StoreError as error:
        return [], [f"it cannot be opened: {error}"]
    try:
        rows = _rows(store)
        return _lost(store, acks, rows), _broken(store, rows) if books else []
    finally:
        store.close()


def _lost(store: SqliteStore, acks: Sequence[Ack], rows: Counter[tuple[str, str]]) -> list[str]:
    lost = []
    for ack in acks:
        if ack.what == "row":
            if not rows[ack.label, ack.value]:
                lost.append(f"a row: {ack}")
            continue
        job = store.job(ack.label)
        if job is None:
            lost.append(f"a job: {ack}")
        elif ack.what == "result" and job.result != json.dumps(ack.value):
            lost.append(f"a result: {ack}, it is {job.state} {job.result}")
        elif ack.what == "failure" and job.state != "FAILED_FINAL":
            lost.append(f"an end: {ack}, it is {job.state}")
    return lost


def _broken(store: SqliteStore, rows: Counter[tuple[str, str]]) -> list[str]:
    said = [row[0] for row in store._reader.execute("PRAGMA integrity_check")]
    broken = [] if said == ["ok"] else said
    broken += [f"{row} is there {count} times" for row, count in rows.items() if count > 1]
    return broken + [str(finding) for finding in audit(store).findings]


def _rows(store: SqliteStore) -> Counter[tuple[str, str]]:
    read = store._reader.execute
    if not list(read("SELECT 1 FROM sqlite_schema WHERE name = 'effects'")):
        return Counter()
    return Counter((label, effect) for label, effect in read("SELECT label, effect FROM effects"))
