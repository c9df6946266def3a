"""Pictures on a file: what the decisions of a flush want to see, one statement for each kind of row.

The lock is held that every writer needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.chain import GENESIS
from tallystick.core.effects.rows import EffectKey, taken_from
from tallystick.core.pictures import (
    START,
    Activity,
    JobFacts,
    Lease,
    LostAttempts,
    Message,
    Picture,
    Pictures,
    Place,
    group_place,
    join_of,
)
from tallystick.core.tuples import make
from tallystick.core.verbs.wants import Wants
from tallystick.store.sql.effect_pictures import add_effects, add_keys, add_lost, add_waiters
from tallystick.store.sql.protocol_pictures import HOMES, add_homes, add_remotes, add_undelivered
from tallystick.store.sql.reads import listed
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    import apsw

    from tallystick.store.sqlite.writer import SqliteBatch

# How many signals of one name are read at first; a decision that finds no answer among them wants all.
_SIGNALS: Final = 2
# Messages that name an activity, or the job, and may drive a claim.
_WORDS: Final = ("resume", "timer", "result")


def look(batch: SqliteBatch, wants: Sequence[Wants], *, whole: bool = False) -> Pictures:
    """Return the pictures of jobs, and of the parents of those that may end; none of a job that is not."""
    pictures = Pictures()
    _add_jobs(batch, pictures, dict.fromkeys(each.job_id for each in wants))
    wants = [each for each in wants if each.job_id in pictures]
    _add_open(batch, pictures, [each.job_id for each in wants if each.open])
    guids = [guid for each in wants for guid in each.guids]
    places = [(each.job_id, each.place) for each in wants if each.place is not None]
    homes = _add_family(batch, pictures, [each.job_id for each in wants if each.ends])
    guids += [join_of(*home) for home in homes]
    places += [(home, group_place(step)) for home, step in homes]
    # What a job takes and what drove it are mostly one message.
    found = _messages(batch, "picture_messages", list(dict.fromkeys(guids))) if guids else []
    found += _signals(batch, pictures, wants, whole=whole)
    found += _remotes(batch, pictures, wants)
    if effects := [each.job_id for each in wants if each.effects]:
        _add_effects(batch, pictures, effects, [key for each in wants for key in each.keys])
    for each in wants:
        if each.begun or each.early or each.children or each.lost is not None:
            _add_rare(batch, pictures[each.job_id], each, found)
    _add_ends(batch, pictures, [each.job_id for each in wants if each.end])
    _add_messages(batch, pictures, found, places)
    return pictures


def look_at_drivers(batch: SqliteBatch, jobs: list[str]) -> Pictures:
    """Return the pictures of jobs that were put away: what is open, and what may drive them now."""
    pictures = Pictures()
    _add_jobs(batch, pictures, jobs)
    _add_open(batch, pictures, jobs)
    found = _messages(batch, "picture_begun", jobs)
    begun = {message.job_id for message in found}
    fresh = [job_id for job_id in jobs if job_id not in begun]
    if fresh:
        found += _messages(batch, "picture_words", fresh, *_WORDS, batch.wall)
        named = {
            (job_id, each.name)
            for job_id in fresh
            for each in pictures[job_id].open_activities()
            if each.kind == "wait"
        }
        found += _messages(batch, "picture_signals", list(named), 1) if named else []
    _add_messages(batch, pictures, found, [])
    return pictures


def look_at_parents(batch: SqliteBatch, homes: Iterable[tuple[str, str]]) -> Pictures:
    """Return the pictures of parents whose children end, with the groups that count them."""
    pictures = Pictures()
    _add_jobs(batch, pictures, {home for home, _step in homes})
    found = _messages(batch, "picture_messages", [join_of(*home) for home in homes])
    _add_messages(batch, pictures, found, [(home, group_place(step)) for home, step in homes])
    return pictures


def _add_jobs(batch: SqliteBatch, pictures: Pictures, jobs: Iterable[str]) -> None:
    asked = (listed(jobs), batch.epoch, batch.boot)
    for row in batch.cursor.execute(sql("picture_jobs"), asked):
        attempt, lease_id, status, live, guid = row[_JOB:]
        lease = None if attempt is None else make(Lease, (attempt, lease_id, status, bool(live), guid))
        pictures[row[0]] = Picture(make(JobFacts, row[:_JOB]), lease)


_JOB: Final = len(JobFacts._fields)


def _add_open(batch: SqliteBatch, pictures: Pictures, jobs: Sequence[str]) -> None:
    if jobs:
        _add_activities(pictures, batch.cursor.execute(sql("picture_open"), (listed(jobs),)))


def _add_family(batch: SqliteBatch, pictures: Pictures, ending: Sequence[str]) -> list[tuple[str, str]]:
    """Add what the end of jobs concerns: whether they have children, and the parents that count them.

    Return these parents, each with its group.
    """
    begun = [job_id for job_id in ending if pictures[job_id].job.attempt]
    for (job_id,) in batch.rows("picture_parents", (listed(begun),)) if begun else ():
        pictures[job_id].has_open_children = True
    counted = [pictures[job_id].job.parent for job_id in ending]
    homes = list(dict.fromkeys(home for home in counted if home is not None))
    unseen = {home for home, _step in homes if home not in pictures}
    if unseen:
        _add_jobs(batch, pictures, unseen)
    return [home for home in homes if home[0] in pictures]


def _signals(batch: SqliteBatch, pictures: Pictures, wants: Sequence[Wants], *, whole: bool) -> list[Message]:
    """Return signals of the names that are waited for; a job whose inbox is empty has none."""
    asked = {
        (each.job_id, name): _SIGNALS + each.ahead
        for each in wants
        if each.signals and pictures[each.job_id].job.inbox_end
        for name in each.signals
    }
    if not asked:
        return []
    limit = max(asked.values())
    found = _messages(batch, "picture_signals", list(asked), -1 if whole else limit)
    if not whole:
        for (job_id, _name), count in Counter((each.job_id, each.name) for each in found).items():
            pictures[job_id].whole = pictures[job_id].whole and count < limit
    return found


def _remotes(batch: SqliteBatch, pictures: Pictures, wants: Sequence[Wants]) -> list[Message]:
    """Add the remote steps of jobs that are open or asked for, and return what says how some have ended."""
    homes = [each.job_id for each in wants if each.remotes]
    if homes:
        jobs = (listed(homes),)
        add_homes(pictures, *(batch.rows(name, jobs) for name in HOMES))
        add_remotes(pictures, batch.rows("picture_remotes", jobs))
    if held := [each.job_id for each in wants if each.undelivered]:
        add_undelivered(pictures, batch.rows("picture_undelivered", (listed(held),)))
    places = [(each.job_id, *each.remote) for each in wants if each.remote is not None]
    if places:
        add_remotes(pictures, batch.rows("picture_remote", (listed(places),)))
    heard = [each.job_id for each in wants if each.results]
    return _messages(batch, "picture_words", heard, "result", "", "", batch.wall) if heard else []


def _add_rare(batch: SqliteBatch, picture: Picture, wants: Wants, found: list[Message]) -> None:
    """Add what few requests want to see: what has begun, children, a lost attempt."""
    job_id, lease = wants.job_id, picture.lease
    if wants.begun and picture.job.attempt:  # nothing has begun of a job that no worker has claimed
        driver = [] if lease is None or lease.guid in ("", START) else [lease.guid]
        found += _messages(batch, "picture_messages", driver) if driver else []
        found += _messages(batch, "picture_begun", [job_id])
        found += _messages(batch, "picture_words", [job_id], "resume", "", "", batch.wall)
    if wants.early:
        found += _messages(batch, "picture_words", [job_id], "child", "", "", batch.wall)
    if wants.children:
        there = (child for (child,) in batch.rows("picture_children", (listed(wants.children),)))
        picture.asked = picture.asked.union(wants.children)
        picture.children = picture.children.union(there)
    if wants.lost is not None:
        for row in batch.rows("picture_pasts", (job_id,)):
            picture.past = LostAttempts._make(row)


def _add_ends(batch: SqliteBatch, pictures: Pictures, jobs: Sequence[str]) -> None:
    """Add where the chains of jobs end."""
    for job_id, n, head in batch.rows("picture_ends", (listed(jobs),)) if jobs else ():
        picture = pictures[job_id]
        picture.end = max(picture.end, (n, head))


def _add_effects(
    batch: SqliteBatch, pictures: Pictures, jobs: Sequence[str], keys: Sequence[EffectKey]
) -> None:
    """Add the effects of jobs that are open, the holders of these keys, and the waiters for any of them."""
    for job_id in jobs:
        pictures[job_id].effects = {}
    add_effects(pictures, batch.rows("picture_effects", (listed(jobs), batch.epoch, batch.boot)))
    if keys:
        add_keys(pictures, batch.rows("picture_keys", (listed(keys),)))
    own = [each.row.exec_id for job_id in jobs for each in (pictures[job_id].effects or {}).values()]
    if own:
        owners = (listed(map(taken_from, own)), batch.epoch, batch.boot)
        add_waiters(pictures, batch.rows("picture_waiters", owners))
    if any(row.is_open for row in pictures.occupied.values()):
        add_lost(pictures, batch.rows("picture_lost", (listed(jobs),)))


def _add_messages(
    batch: SqliteBatch, pictures: Pictures, messages: Iterable[Message], places: list[tuple[str, Place]]
) -> None:
    """Add messages with the activities that they name, and activities by their places."""
    wanted = dict.fromkeys(places)
    for message in messages:
        picture = pictures.get(message.job_id)
        if picture is None:
            continue
        picture.messages[message.guid] = message
        place = message.place
        if place is not None and place not in picture.activities and not message.is_of_root:
            wanted[message.job_id, place] = None
    if wanted:
        asked = [(job_id, *place) for job_id, place in wanted]
        _add_activities(pictures, batch.cursor.execute(sql("picture_activity"), (listed(asked),)))


def _messages(
    batch: SqliteBatch, name: str, keys: Sequence[str | tuple[str, str]], *parameters: object
) -> list[Message]:
    rows = batch.cursor.execute(sql(name), (listed(keys), *parameters))
    return [make(Message, row) for row in rows]


def _add_activities(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> None:
    for row in rows:
        activity = make(Activity, row)
        picture = pictures.get(activity.job_id)
        if picture is not None:
            picture.activities[activity.place] = activity


def chain_end(cursor: apsw.Cursor, job_id: str) -> tuple[int, bytes]:
    """Return the place and the hash of a job's newest fact."""
    return next(iter(cursor.execute(sql("chain_head"), (job_id,))), (0, GENESIS))
