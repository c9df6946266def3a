"""Receipts for workers that return before their turn, so that no crash makes them work again.

Work is recorded in the order in which it was begun. A worker that returns earlier gets a receipt beside the
staged artifacts; it becomes a record when the turn comes, in this process or in the next. A receipt is no
fact: nothing but the log says what has happened, and a receipt that no longer fits the log is deleted.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from tallystick import crash
from tallystick.errors import BadInput
from tallystick.log.event import NOT_DECODABLE
from tallystick.runs.log.events import ArtifactWritten, Issue, IssueMove, Payload, SectionState
from tallystick.runs.log.fold import RunView
from tallystick.runs.log.snapshot import WorkStatus
from tallystick.runs.workers.artifacts import ArtifactFiles
from tallystick.runs.workers.work import SectionWish, Work

PREFIX: Final = "receipt-"

BEFORE_KEEPING: Final = crash.declare(
    "receipt.keep.before", "a worker has returned before its turn, and no record says so"
)
KEPT: Final = crash.declare("receipt.keep.done", "a worker has returned before its turn and has a receipt")


class Note(Payload, frozen=True):
    """One thing that a worker said: exactly one of these is there."""

    issue: Issue | None = None
    issue_move: IssueMove | None = None
    section: str = ""
    section_state: SectionState | None = None


class Receipt(Payload, frozen=True):
    """Everything that recording the end of a work item needs, and the content it rests on."""

    work_item_id: str
    span_id: str
    parent_span_id: str
    inputs: dict[str, str]
    made: list[ArtifactWritten]
    notes: list[Note]
    outcome: str


_encoder: Final = msgspec.json.Encoder(order="sorted")
_decoder: Final = msgspec.json.Decoder(Receipt)


class Receipts:
    """The receipts of one run, beside its staged artifacts."""

    def __init__(self, artifact_files: ArtifactFiles) -> None:
        """Keep them beside these artifacts."""
        self._artifact_files = artifact_files

    def keep(self, work: Work, span_id: str, parent_span_id: str, outcome: str) -> None:
        """Make the end of a work item durable before its turn to be recorded has come."""
        receipt = Receipt(
            work.work_item_id,
            span_id,
            parent_span_id,
            work.input_digests(),
            [work.made[name] for name in sorted(work.made)],
            [_note(one) for one in work.notes],
            outcome,
        )
        try:
            data = _encoder.encode(receipt)
        except UnicodeEncodeError as error:
            raise BadInput("a text holds half of a surrogate pair and has no UTF-8 form") from error
        crash.point(BEFORE_KEEPING)
        self._artifact_files.put_beside(_file_name(work.work_item_id), data)
        crash.point(KEPT)

    def drop(self, work_item_id: str) -> None:
        """Forget a receipt whose work is on record."""
        self._artifact_files.drop_beside(_file_name(work_item_id))

    def settle(self, view: RunView, *, believe: bool) -> dict[str, Receipt]:
        """Return what still fits the log, by work item; everything else beside the artifacts is removed.

        Without `believe` no receipt is used: the user wants work done again.
        """
        found: dict[str, Receipt] = {}
        for name, data in self._artifact_files.beside(PREFIX) if believe else ():
            receipt = _read(data)
            if receipt is not None and _file_name(receipt.work_item_id) == name and self._fits(view, receipt):
                found[receipt.work_item_id] = receipt
        staged = {(one.name, one.sha256) for receipt in found.values() for one in receipt.made}
        self._artifact_files.settle(
            view.artifacts, keep=staged, beside={_file_name(item_id) for item_id in found}
        )
        return found

    def accept(self, receipt: Receipt, work: Work) -> bool:
        """Put what the worker left into `work`, or forget it if the inputs are not what it has read."""
        if receipt.inputs != work.input_digests():
            self.drop(receipt.work_item_id)
            for one in receipt.made:
                self._artifact_files.unstage(one.name, one.sha256)
            return False
        work.made.update((one.name, one) for one in receipt.made)
        work.notes += [_said(note) for note in receipt.notes]
        return True

    def _fits(self, view: RunView, receipt: Receipt) -> bool:
        item = view.items.get(receipt.work_item_id)
        if item is None or item.status is not WorkStatus.RUNNING or receipt.span_id not in view.spans:
            return False
        return all(
            self._artifact_files.is_staged(one.name, one.sha256)
            or (one.name in view.artifacts and view.artifacts[one.name].sha256 == one.sha256)
            for one in receipt.made
        )


def _file_name(work_item_id: str) -> str:
    return f"{PREFIX}{hashlib.sha256(work_item_id.encode()).hexdigest()[:32]}"


def _read(data: bytes) -> Receipt | None:
    try:
        return _decoder.decode(data)
    except NOT_DECODABLE:
        return None


def _note(one: Issue | IssueMove | SectionWish) -> Note:
    if isinstance(one, SectionWish):
        return Note(section=one.section, section_state=one.to_state)
    return Note(issue=one) if isinstance(one, Issue) else Note(issue_move=one)


def _said(note: Note) -> Issue | IssueMove | SectionWish:
    if note.section_state is not None:
        return SectionWish(note.section, note.section_state)
    said = note.issue or note.issue_move
    assert said is not None
    return said
