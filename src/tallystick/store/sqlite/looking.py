"""Pictures on a file: what a decision wants to see, read with the lock held that everybody needs to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tallystick.core.hash_chain import GENESIS
from tallystick.core.pictures import (
    START,
    Activity,
    JobFacts,
    Lease,
    Message,
    Past,
    Picture,
    Pictures,
    group_place,
    join_of,
)
from tallystick.core.verbs.wants import Wants
from tallystick.store.api import ReclaimAttempt
from tallystick.store.sql.reads import listed
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    import apsw

    from tallystick.store.sqlite.writer import SqliteBatch

# How many signals of one name are read at first; a decision that finds no answer among them wants all.
_SIGNALS: Final = 2
# Messages that name an activity, or the job, and may drive a claim.
_WORDS: Final = ("resume", "timer", "result")


def look(  # noqa: C901 (one line for each thing to see)
    batch: SqliteBatch, wants: Wants, *, whole: bool = False
) -> Pictures:
    """Return the picture of a job, and of its parent if the job may end; none if there is no such job."""
    pictures = Pictures()
    job_id = wants.job_id
    picture = _picture(batch, pictures, job_id)
    if picture is None:
        return pictures
    if wants.open:
        _add_activities(picture, _rows(batch, "picture_open", job_id))
    for guid in wants.guids:
        _add_message(batch, pictures, guid)
    for name in wants.signals:
        limit = -1 if whole else _SIGNALS + wants.ahead
        found = _rows(batch, "picture_signals", job_id, name, limit)
        picture.whole = picture.whole and (whole or len(found) < limit)
        _add_messages(picture, found)
    if wants.begun:
        _add_begun(batch, pictures, picture)
    if wants.place is not None:
        _add_activities(picture, _rows(batch, "picture_activity", job_id, *wants.place))
    if wants.early:
        _add_messages(picture, _rows(batch, "picture_words", job_id, "child", "", "", batch.wall))
    if wants.children:
        picture.asked = frozenset(wants.children)
        found = _rows(batch, "picture_children", listed(wants.children))
        picture.children = frozenset(child for (child,) in found)
    if wants.end:
        picture.end = chain_end(batch.cursor, job_id)
    if wants.inbox:
        _add_inbox(batch, picture)
    if wants.lost is not None:
        _add_past(batch, picture, wants.lost)
    if wants.ends:
        _add_family(batch, pictures, picture)
    return pictures


def _add_family(batch: SqliteBatch, pictures: Pictures, picture: Picture) -> None:
    """Add what the end of a job concerns: whether it has children, and the parent that counts it."""
    job = picture.job
    if job.attempt:
        ((found,),) = _rows(batch, "picture_parents", job.job_id)
        picture.has_open_children = bool(found)
    if job.parent is not None:
        add_parent(batch, pictures, job.parent)


def _add_past(batch: SqliteBatch, picture: Picture, lost: ReclaimAttempt) -> None:
    for row in _rows(batch, "picture_pasts", picture.job.job_id):
        picture.past = Past._make(row)
    if lost.unit:
        picture.effect = _lease(batch, picture.job.job_id, lost.unit)


def add_parent(batch: SqliteBatch, pictures: Pictures, parent: tuple[str, str]) -> None:
    """Add the parent of a job that may end, with the group that counts it."""
    home, step = parent
    picture = pictures.get(home) or _picture(batch, pictures, home)
    if picture is None:
        return
    _add_activities(picture, _rows(batch, "picture_activity", home, *group_place(step)))
    _add_message(batch, pictures, join_of(home, step))
    _add_inbox(batch, picture)


def look_at_drivers(batch: SqliteBatch, job_id: str) -> Picture:
    """Return the picture of a job that was put away: what is open, and what may drive it now."""
    picture = _picture(batch, Pictures(), job_id)
    assert picture is not None, "a job that is being claimed is there"
    _add_activities(picture, _rows(batch, "picture_open", job_id))
    _add_entering(batch, picture, _rows(batch, "picture_begun", job_id))
    if picture.messages:
        return picture
    _add_entering(batch, picture, _rows(batch, "picture_words", job_id, *_WORDS, batch.wall))
    for name in {each.name for each in picture.open_activities() if each.kind == "wait"}:
        _add_messages(picture, _rows(batch, "picture_signals", job_id, name, 1))
    return picture


def _picture(batch: SqliteBatch, pictures: Pictures, job_id: str) -> Picture | None:
    for *job, attempt, lease_id, status, live, guid in _rows(
        batch, "picture_jobs", job_id, batch.epoch, batch.boot
    ):
        lease = None if attempt is None else Lease(attempt, lease_id, status, bool(live), guid)
        picture = pictures[job_id] = Picture(JobFacts._make(job), lease)
        return picture
    return None


def _lease(batch: SqliteBatch, job_id: str, unit: str) -> Lease | None:
    for attempt, lease_id, status, live, guid in _rows(
        batch, "picture_leases", job_id, batch.epoch, batch.boot, unit
    ):
        return Lease(attempt, lease_id, status, bool(live), guid)
    return None


def _add_begun(batch: SqliteBatch, pictures: Pictures, picture: Picture) -> None:
    """Add what drives the attempt that holds a job, and every message that has begun."""
    lease = picture.lease
    if lease is not None and lease.guid not in ("", START):
        _add_message(batch, pictures, lease.guid)
    words = _rows(batch, "picture_words", picture.job.job_id, "resume", "", "", batch.wall)
    _add_entering(batch, picture, [*_rows(batch, "picture_begun", picture.job.job_id), *words])


def _add_entering(batch: SqliteBatch, picture: Picture, rows: list[tuple[Any, ...]]) -> None:
    """Add messages with the activities that they name."""
    for row in rows:
        message = Message._make(row)
        picture.messages[message.guid] = message
        _add_entered(batch, picture, message)


def _add_message(batch: SqliteBatch, pictures: Pictures, guid: str) -> None:
    for row in _rows(batch, "picture_messages", guid):
        message = Message._make(row)
        picture = pictures.get(message.job_id)
        if picture is not None:
            picture.messages[guid] = message
            _add_entered(batch, picture, message)


def _add_entered(batch: SqliteBatch, picture: Picture, message: Message) -> None:
    place = message.place
    if place is not None and place not in picture.activities and not message.is_of_root:
        _add_activities(picture, _rows(batch, "picture_activity", message.job_id, *place))


def _add_activities(picture: Picture, rows: list[tuple[Any, ...]]) -> None:
    for row in rows:
        activity = Activity._make(row)
        picture.activities[activity.place] = activity


def _add_messages(picture: Picture, rows: list[tuple[Any, ...]]) -> None:
    for row in rows:
        message = Message._make(row)
        picture.messages[message.guid] = message


def _add_inbox(batch: SqliteBatch, picture: Picture) -> None:
    for arrived, created_at in _rows(batch, "picture_inbox", picture.job.job_id):
        picture.job = picture.job._replace(inbox_end=arrived, inbox_at=created_at)


def _rows(batch: SqliteBatch, name: str, *parameters: object) -> list[tuple[Any, ...]]:
    return list(batch.cursor.execute(sql(name), parameters))


def chain_end(cursor: apsw.Cursor, job_id: str) -> tuple[int, bytes]:
    """Return the place and the hash of a job's newest fact."""
    return next(iter(cursor.execute(sql("chain_head"), (job_id,))), (0, GENESIS))
