"""Write the journal of a stage: outcomes become durable, so that a killed stage goes on where it was.

A micro-batch is one line, and it is on the disk before its first item counts as committed or the commit
function sees it. That the commit function returned is noted in the next line. So after a crash there is
at most one batch in doubt, the last one; it is handed to the commit function again, as it was.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tallystick import crash
from tallystick.core.chain import SHORT_GENESIS
from tallystick.errors import JournalBusy, JournalCorrupt, JournalError, JournalMismatch
from tallystick.log.file_lock import try_lock
from tallystick.stage.journal.format import (
    MAGIC,
    Batched,
    Closed,
    Cut,
    JournalLine,
    JournalOpened,
    Record,
    Row,
    TornLine,
    lines,
    seal,
)

CREATED: Final = crash.declare("stage.journal.created", "the journal exists and is empty")
BEFORE_CUT: Final = crash.declare("stage.journal.before_cut", "a torn line was found and is still there")
BEFORE_WRITE: Final = crash.declare("stage.journal.before_write", "a line is ready to be written")
WRITTEN: Final = crash.declare("stage.journal.written", "a line is written and not yet synced")
SYNCED: Final = crash.declare("stage.journal.synced", "a line is durable")


@dataclass(slots=True)
class Standing:
    """What the lines of a journal add up to."""

    stage: str = ""
    runs: int = 0
    next: int = 0
    delivered: int = 0
    complete: bool = False
    last_batch: Batched | None = None
    chain: bytes = SHORT_GENESIS
    end: int = 0
    torn: TornLine | None = None
    cuts: list[Cut] = field(default_factory=list)


def read_standing(path: Path) -> Standing:
    """Add up a journal; raise `JournalCorrupt` if no stage can have written it."""
    standing = Standing()
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size >= len(MAGIC):
            standing.end = len(MAGIC)
        for line in lines(path, file):
            if isinstance(line, TornLine):
                standing.torn = line
            else:
                _add(path, standing, line)
    return standing


def read_batches(path: Path) -> Iterator[tuple[int, Batched]]:
    """Return every batch with the number of its run, in order; a torn last line is left out."""
    run = 0
    following = 0
    with path.open("rb") as file:
        for line in lines(path, file):
            if isinstance(line, JournalLine):
                if isinstance(line.record, JournalOpened):
                    run = line.record.run
                # A batch that repeats known outcomes word for word adds nothing.
                elif isinstance(line.record, Batched) and line.record.first == following:
                    following += len(line.record.rows)
                    yield run, line.record


class Journal:
    """An open journal. One stage at a time may have it; `append` returns when the line is durable."""

    def __init__(self, path: Path, stage: str, at_ms: int) -> None:
        """Open or create the journal, cut off what a crash tore, and note that a run begins."""
        self.path = path
        # The function of the stage may change the folder in which it runs.
        self._place = path.absolute()
        self.syncs = 0
        created = not path.exists()
        self._file = _open(path)
        try:
            self._lock()
            crash.point(CREATED)
            if created:
                _sync_folder(path)
            self.standing = read_standing(path)
            self._check_stage(stage)
            self._cut()
            self.first = self.standing.next
            self.run = self.standing.runs + 1
            self.append(JournalOpened(stage, self.run, self.first, at_ms))
        except BaseException:
            os.close(self._file)
            raise

    @property
    def in_doubt(self) -> Batched | None:
        """Return the last batch if it is unknown whether its commit function returned."""
        batch = self.standing.last_batch
        return batch if batch is not None and self.standing.delivered < self.standing.next else None

    def keys(self) -> Generator[str]:
        """Return the keys of the items that have their outcome, in seq order."""
        for _, batch in read_batches(self.path):
            yield from (row[2] for row in batch.rows)

    def append_batch(self, first: int, rows: list[Row], started: int) -> None:
        """Make the outcomes of consecutive seqs durable."""
        self.append(Batched(first, self.standing.delivered, started, rows))

    def note_delivered(self, end: int) -> None:
        """Remember that the commit function has returned for all below `end`; the next line says so."""
        self.standing.delivered = end

    def close(self, started: int, *, complete: bool) -> None:
        """Note that the run ended in order, and let go of the file."""
        try:
            self.append(Closed(self.standing.delivered, started, complete))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file without a note, as a crash would."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def append(self, record: Record) -> None:
        """Write one line and return when it is durable; after an error of the disk all is as before."""
        standing = self.standing
        data, chain = seal(record, standing.chain)
        if not standing.end:
            data = MAGIC + data
        crash.point(BEFORE_WRITE)
        try:
            _write_all(self._file, data, standing.end)
            crash.point(WRITTEN)
            os.fsync(self._file)
        except OSError as error:
            # What is half written would be cut off by the next run; do it now if the disk lets us.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, standing.end)
            raise JournalError(
                f"{self.path} cannot be written: {error.strerror}. Nothing of this batch counts as "
                "committed; make room and start the stage again",
                path=str(self.path),
            ) from error
        self._check_place()
        crash.point(SYNCED)
        self.syncs += 1
        _add(self.path, standing, JournalLine(record, chain, standing.end + len(data)))

    def _lock(self) -> None:
        if not try_lock(self._file):
            raise JournalBusy(
                f"{self.path} is in use by another stage; wait for it or give this one its own journal",
                path=str(self.path),
            )

    def _check_place(self) -> None:
        """Raise if the next run would not find what was written, because the file was removed or moved."""
        if not _is_at(self._file, self._place):
            raise JournalError(
                f"{self.path} was removed or replaced while the stage was running, and with it what has its "
                "outcome. Put it back, or begin a new journal",
                path=str(self.path),
            )

    def _check_stage(self, stage: str) -> None:
        if self.standing.runs and self.standing.stage != stage:
            raise JournalMismatch(
                f"{self.path} belongs to the stage {self.standing.stage!r}, not to {stage!r}; "
                "use another file, or name=... if it is the same stage under a new name",
                journal=self.standing.stage,
                stage=stage,
            )

    def _cut(self) -> None:
        torn = self.standing.torn
        if torn is None:
            return
        crash.point(BEFORE_CUT)
        # The note is written over the torn line and only then is the rest cut off: whenever this is
        # interrupted, what is left is again a torn last line, or the note.
        self.append(Cut(*torn))
        os.ftruncate(self._file, self.standing.end)
        self.standing.torn = None


def _add(path: Path, standing: Standing, line: JournalLine) -> None:
    """Add one line to the standing, or raise if it cannot follow what came before."""
    record = line.record
    match record:
        case JournalOpened():
            if record.run != standing.runs + 1 or record.next != standing.next:
                raise _corrupt(path, line, f"run {record.run} begins at seq {record.next}")
            standing.stage = record.stage
            standing.runs = record.run
            standing.complete = False
        case Batched():
            _add_batch(path, standing, record, line)
        case Cut():
            standing.cuts.append(record)
        case Closed():
            standing.delivered = record.delivered
            standing.complete = record.complete
    if not standing.delivered <= standing.next:
        raise _corrupt(path, line, f"delivered up to {standing.delivered}")
    standing.chain = line.chain
    standing.end = line.end


def _add_batch(path: Path, standing: Standing, batch: Batched, line: JournalLine) -> None:
    if batch.first > standing.next:
        raise _corrupt(path, line, f"seqs {standing.next} to {batch.first - 1} are missing")
    if batch.first < standing.next:
        _compare(path, batch, line, standing.next)
        return
    standing.delivered = batch.delivered
    standing.next += len(batch.rows)
    standing.last_batch = batch


def _compare(path: Path, batch: Batched, line: JournalLine, end: int) -> None:
    """Accept a batch that says again, word for word, what is known; another word for a seq is corruption."""
    known: dict[int, Row] = {}
    for _, earlier in read_batches(path):
        if earlier.first >= end:
            break
        known.update({earlier.first + index: row for index, row in enumerate(earlier.rows)})
    for index, row in enumerate(batch.rows):
        seq = batch.first + index
        if seq not in known or _plain(known[seq]) != _plain(row):
            raise _corrupt(path, line, f"a second, different outcome of seq {seq}")


def _plain(row: Row) -> tuple[int, int, str, bytes]:
    return row[0], row[1], row[2], bytes(row[3])


def _corrupt(path: Path, line: JournalLine, what: str) -> JournalCorrupt:
    return JournalCorrupt(
        f"{path} is corrupt before byte {line.end}: {what}. Restore it from a copy, or begin a new journal",
        path=str(path),
        offset=line.end,
        what=what,
    )


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise JournalError(f"{path} cannot be opened: {error.strerror}", path=str(path)) from error


def _is_at(file: int, place: Path) -> bool:
    """Tell whether an open file still has this name."""
    if sys.platform == "win32":
        return True  # Windows does not remove a file that is open
    try:
        return os.path.samestat(os.fstat(file), place.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # a folder that may not be entered any more has lost nothing


def _write_all(file: int, data: bytes, offset: int) -> None:
    os.lseek(file, offset, os.SEEK_SET)
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _sync_folder(path: Path) -> None:
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
