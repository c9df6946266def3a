"""Sealing the books of a store, and comparing them with a seal that was made before.

Both read jobs in the order of their identifiers, a page at a time and without a snapshot, so workers are not
held up. Memory grows with the jobs that a seal lists, not with the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Final

from tallystick.core.audit.book import Finding
from tallystick.core.audit.removals import ChainEnd, LogEnd
from tallystick.engine.audit.seals import SEAL_FORM, YOUNG_MS, Listed, Seal, Tree
from tallystick.errors import BadInput, StoreBusy
from tallystick.store.api import Store
from tallystick.store.inspection import Inspection, JobHead

_PAGE: Final = 1_000
_TRIES: Final = 5


def seal(store: Store, made_at: int) -> Seal:
    """Return a seal of the store as it is now; `made_at` is for people."""
    inspection = store.inspect()
    for _ in range(_TRIES):
        end = inspection.removals_end()
        made = _sealed(inspection, made_at, end)
        if inspection.removals_end() == end:
            return made
    raise StoreBusy("retention removes jobs all the time; seal the store when it rests")


def _sealed(inspection: Inspection, made_at: int, end: LogEnd) -> Seal:
    tree, listed, at = Tree(), [], inspection.newest_birth()
    for job in _jobs(inspection):
        if _is_settled(job, at):
            tree.add(job.head.leaf())
        else:
            head = inspection.newest_fact(job.head.job_id) or job.head
            listed.append(Listed(head.job_id, head.n, head.event_hash.hex()))
    about = (SEAL_FORM, made_at, at, tree.leaves, tree.root().hex(), end.seq, end.event_hash)
    acts = inspection.acts_end()
    return Seal(*about, tuple(listed), acts=acts.seq, acts_hash=acts.event_hash)


def compare(store: Store, sealed: Seal) -> Iterator[Finding]:
    """Give what is not as the seal says: histories that are others, jobs that are gone without a trace."""
    if sealed.form != SEAL_FORM:
        raise BadInput(f"a seal of form {sealed.form} cannot be read here; form {SEAL_FORM} can")
    inspection = store.inspect()
    yield from _log(inspection, sealed)
    yield from _acts(inspection, sealed)
    yield from _listed(inspection, sealed)
    known = {one.job_id for one in sealed.listed}
    tree = Tree()
    for head in merge(_settled(inspection, sealed), _removed(inspection, sealed)):
        if head.job_id not in known:
            tree.add(head.leaf())
    if tree.leaves != sealed.jobs:
        yield Finding(
            "", "seal", f"{sealed.jobs} jobs had ended, and {tree.leaves} of them can be accounted for"
        )
    elif tree.root().hex() != sealed.root:
        yield Finding("", "seal", "the history of a job that had ended is not the one that was sealed")


def _is_settled(job: JobHead, at: int) -> bool:
    """Tell whether a job stands in the tree: it has ended, and others of its age are all to be seen."""
    return job.completed_at is not None and job.created_at < at - YOUNG_MS


def _settled(inspection: Inspection, sealed: Seal) -> Iterator[ChainEnd]:
    return (job.head for job in _jobs(inspection) if _is_settled(job, sealed.at))


def _jobs(inspection: Inspection) -> Iterator[JobHead]:
    after, more = "", True
    while more:
        page = inspection.heads(after=after, limit=_PAGE)
        yield from page
        more = len(page) == _PAGE
        after = page[-1].head.job_id if page else after


def _removed(inspection: Inspection, sealed: Seal) -> Iterator[ChainEnd]:
    """Give the jobs that the log of removals names since the seal was made, in the order of identifiers."""
    after, more = "", True
    while more:
        page = inspection.removed_jobs(after=after, behind=sealed.removals, limit=_PAGE)
        for line in page:
            if line.born_at < sealed.at - YOUNG_MS:
                yield ChainEnd(line.job_id, line.last_n, bytes.fromhex(line.head_hash))
        more = len(page) == _PAGE
        after = page[-1].job_id if page else after


def _log(inspection: Inspection, sealed: Seal) -> Iterator[Finding]:
    """Compare the end that the log of removals had: what stood there stands there still."""
    if not sealed.removals:
        return
    line = inspection.removals(after=sealed.removals - 1, limit=1)
    if [(one.seq, one.event_hash) for one in line] != [(sealed.removals, sealed.removals_hash)]:
        yield Finding("", "seal", f"removal {sealed.removals} is not in the log as it was sealed")


def _acts(inspection: Inspection, sealed: Seal) -> Iterator[Finding]:
    """Compare the end that the chain of acts had."""
    line = inspection.acts_log(after=sealed.acts - 1, limit=1) if sealed.acts else []
    if [(one.seq, one.event_hash) for one in line] != [(sealed.acts, sealed.acts_hash)][: sealed.acts]:
        yield Finding("", "seal", f"act {sealed.acts} is not there as it was sealed")


def _listed(inspection: Inspection, sealed: Seal) -> Iterator[Finding]:
    """Compare the jobs that went on: the fact that was their last is there, or was removed by right."""
    for one in sealed.listed:
        fact = inspection.fact_hash(one.job_id, one.n)
        if fact is not None and fact.hex() == one.hash:
            continue
        lines = inspection.removals_of(one.job_id) if fact is None else []
        if not any(line.last_n >= one.n for line in lines):
            gone = "is gone, and no removal is noted"
            what = gone if fact is None else "is not the one that was sealed"
            yield Finding(one.job_id, "seal", f"its fact {one.n} {what}")
