"""Retention: the books of jobs that ended long ago go, so many in one bundle, each whole or not at all.

Of a loop that goes on its oldest turns go, each whole.

No index is kept for it: jobs are looked at in the order of their submission, a stretch at a time. What
was made after the day in question cannot have ended before it, so the young ones are never looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from tallystick.core.audit.removals import LogEnd, PrunedRow, Removal, lines_of
from tallystick.core.effects.kept_keys import KEEPING, named, print_of
from tallystick.core.effects.requests import PruneEffects
from tallystick.core.effects.rows import EffectRow
from tallystick.core.verbs.trimming import TRIMMING
from tallystick.errors import InvariantBroken
from tallystick.store.api import Pruned, PruneJobs, TrimTurns
from tallystick.store.sql.reads import listed
from tallystick.store.writing import OpenTransaction

# What refers to a job goes before it. The databases refuse any other order, and every job that is not marked.
_BOOKS = ("events", "steps", "messages", "attempts", "outbox", "values", "acts", "idempotency", "jobs")


def prune(batch: OpenTransaction, request: PruneJobs) -> Pruned:
    """Look at a stretch of jobs, remove the books of those that may go, and say where to go on."""
    ended_by = batch.wall - request.older_ms
    stretch = batch.rows("old_jobs", (request.after, str(request.limit)))
    ended = [job_id for job_id, _made, at in stretch if at is not None and at <= ended_by]
    removed = _removed(batch, ended, ended_by, request.who) if ended else 0
    over = len(stretch) < request.limit or all(made > ended_by for _job_id, made, _at in stretch)
    last, _made, _at = stretch[-1] if stretch else (None, 0, 0)
    return Pruned(removed, None if over else last)


def prune_effects(batch: OpenTransaction, request: PruneEffects) -> int:
    """Remove effects that were kept long enough, write down that they go, and say how many.

    What no line of the log names as removed is not there by right, and stays.
    """
    batch.rows("hold_pruned", ())
    ended = batch.rows("keys_to_go", (batch.wall - request.older_ms, request.limit))
    going: dict[str, list[EffectRow]] = defaultdict(list)
    for key in map(EffectRow._make, ended):
        going[key.job_id].append(key)
    lines = map(PrunedRow._make, batch.rows("removed_whole", (listed(list(going)),)) if going else ())
    removals = [line.again(named(going[line.job_id])) for line in lines]
    note_removals(batch, removals, KEEPING)
    gone = [key.exec_id for removal in removals for key in going[removal.job_id]]
    return batch.changed("prune_effects", (listed(gone),)) if gone else 0


def trim(batch: OpenTransaction, request: TrimTurns) -> None:
    """Remove the turns of a loop up to the one that a fact has ended, and write down that they go.

    The fence was checked by the fact before this in the bundle, so the job is held and goes on.
    """
    job_id, end = request
    found = batch.rows("turn_end", (job_id, end.n))
    if [(bytes(row[0]), row[1]) for row in found] != [(end.event_hash, end.attempt)]:
        raise InvariantBroken(f"job {job_id}: no turn has ended with fact {end.n}, so none is removed")
    born_at = int(found[0][2])
    left = print_of(map(EffectRow._make, batch.rows("keys_of_turns", (job_id, end.dimension))))
    removal = Removal(job_id, False, end.dimension, end.n, end.event_hash, born_at, left)
    note_removals(batch, [removal], TRIMMING)
    batch.run("trim_units", (job_id, end.dimension))
    batch.run("trim_steps", (job_id, end.dimension))
    batch.run("trim_messages", (job_id, end.dimension))
    batch.run("trim_attempts", (job_id, end.attempt))
    # Last of all: until then the database sees by them which attempts may go.
    batch.run("trim_events", (job_id, end.n))


def note_removals(batch: OpenTransaction, removals: Sequence[Removal], who: str) -> None:
    """Write down what goes in this transaction; every removal of anything of a job calls this."""
    if not removals:
        return
    batch.rows("hold_pruned", ())
    end = [LogEnd._make(row) for row in batch.rows("pruned_end", ())]
    lines = lines_of(removals, end[0] if end else LogEnd(), batch.wall, who)
    if batch.changed("insert_pruned", (msgspec.json.encode(lines).decode(),)) != len(lines):
        raise InvariantBroken("a removal could not be written down, so nothing is removed")


def _removed(batch: OpenTransaction, ended: list[str], ended_by: int, who: str) -> int:
    """Mark those that may go, write down that they go, remove their books, and return how many they were."""
    held = [job_id for (job_id,) in batch.rows("hold_ended", (listed(ended),))]
    marked = batch.rows("mark_pruned", (listed(held), ended_by, batch.wall))
    if marked:
        left: dict[str, list[EffectRow]] = defaultdict(list)
        jobs = [job_id for job_id, *_about in marked]
        for key in map(EffectRow._make, batch.rows("keys_left", (listed(jobs),))):
            left[key.job_id].append(key)
        going = sorted(
            Removal(job_id, True, *about)._replace(keys=print_of(left[job_id])) for job_id, *about in marked
        )
        note_removals(batch, going, who)
        gone = listed([removal.job_id for removal in going])
        for books in _BOOKS:
            batch.run(f"prune_{books}", (gone,))
    return len(marked)
