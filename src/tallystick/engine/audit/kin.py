"""Compares a job with other rows that must agree with it: its parent's, its fork's, its key, its tags."""

from __future__ import annotations

import msgspec

from tallystick.core.audit.book import Book, Findings, WholeJob
from tallystick.core.audit.told import Account
from tallystick.core.lifecycles import JOB
from tallystick.core.pictures import child_of
from tallystick.core.queues.reusing import REUSE
from tallystick.store.api import Group, NewJob
from tallystick.store.inspection import Inspection


def judge_kin(inspection: Inspection, book: Book, whole: WholeJob, said: Account, findings: Findings) -> int:
    """Note what others say otherwise, and return what stands for what was read of them."""
    seen = [
        _word(inspection, book, whole, findings),
        _retried(inspection, whole, said, findings),
        _key(inspection, whole, said, findings),
        _tags(inspection, whole, findings),
    ]
    return hash(tuple(seen))


def _word(inspection: Inspection, book: Book, whole: WholeJob, findings: Findings) -> object:
    """Look for the word that a child leaves with its group when it ends."""
    parent, step = whole.born.parent_job_id, whole.rest.parent_step
    if parent is None or step is None or book.state not in JOB.final or not book.ledger_form:
        return None
    word = inspection.message(child_of(book.job_id))
    if word is None:
        removal = inspection.trimmed(parent)
        trimmed = removal is not None and Group.parse(step).dimension <= removal.dimension
        if inspection.book(parent) is not None and not trimmed:
            findings.note("kin", f"its parent {parent} never heard that it has ended")
        return None
    said = (word.job_id, str(Group(word.dimension, word.name, word.occurrence or 0)), word.payload)
    if said != (parent, step, book.state):
        findings.note("kin", f"it is {book.state}, and its parent was told otherwise")
    if word.redeliveries:
        findings.note("kin", "the word to its parent was delivered more than once")
    if word.created_at < (whole.rest.completed_at or 0):
        findings.note("kin", "its parent heard that it has ended before it had")
    return word


def _retried(inspection: Inspection, whole: WholeJob, said: Account, findings: Findings) -> object:
    """Look whether a job that was retried and the one in its place name each other."""
    heir = whole.rest.retried_as
    if heir is not None:
        other = inspection.whole(heir)
        if other is None and not inspection.removals_of(heir):
            findings.note("kin", f"{heir} took its place and is not there, and no removal is noted")
        elif other is not None and other.rest.retry_of != whole.born.job_id:
            findings.note("kin", f"{heir} took its place, and says otherwise")
    origin = said.born.get("fork_of")
    if isinstance(origin, str):
        before = inspection.whole(origin)
        if before is None and not inspection.removals_of(origin):
            findings.note("kin", f"it is a fork of {origin}, which is not there, and no removal is noted")
        elif before is not None and said.born.get("retry") and before.rest.retried_as != whole.born.job_id:
            findings.note("kin", f"it took the place of {origin}, which says otherwise")
        return (heir, before)
    return heir


def _key(inspection: Inspection, whole: WholeJob, said: Account, findings: Findings) -> object:
    """Look whether what a submission is known by is reserved for it, until another takes its place."""
    born = whole.born
    if born.idempotency_hash is None or whole.rest.retried_as is not None:
        return None
    scope, value = (
        ("content", born.idempotency_hash) if born.idempotency_key is None else ("key", born.idempotency_key)
    )
    kept = inspection.kept(born.tenant_id, scope, value)
    if kept is None:
        findings.note("reservations", f"its {scope} is not reserved for it")
        return None
    if kept.job_id != born.job_id and _has_taken_over(inspection, kept.job_id, born):
        return kept
    if (kept.job_id, kept.content_hash, kept.canon_version) != (
        born.job_id,
        born.idempotency_hash,
        born.canon_version,
    ):
        findings.note("reservations", f"its {scope} is reserved for {kept.job_id}, or for other content")
    # A retry has taken over what was reserved when the job was made whose place it has.
    told = said.first if said.birth_print is not None and not said.born.get("retry") else None
    if told is not None and kept.created_at not in (told.at, born.created_at):
        findings.note("reservations", f"its {scope} was reserved at another time than it was made")
    return kept


def _has_taken_over(inspection: Inspection, job_id: str, born: NewJob) -> bool:
    """Tell whether a later job has the key of this one by right: it was submitted under a rule for that."""
    other = inspection.whole(job_id)
    if other is None or other.born.created_at < born.created_at:
        return False
    options = msgspec.json.decode(other.born.options, type=dict[str, object])
    return REUSE in options and (other.born.tenant_id, other.born.idempotency_key) == (
        born.tenant_id,
        born.idempotency_key,
    )


def _tags(inspection: Inspection, whole: WholeJob, findings: Findings) -> object:
    """Look whether it can be found by every tag that it has."""
    if whole.born.tags is None:
        return None
    try:
        tags = set(msgspec.json.decode(whole.born.tags, type=list[str]))
    except msgspec.DecodeError:
        findings.note("tags", "its tags cannot be read")
        return None
    missing = tags - inspection.has_tags(whole.born.job_id, sorted(tags))
    if missing:
        findings.note("tags", f"it cannot be found by {', '.join(sorted(missing))}")
    return frozenset(missing)


def ancestors(inspection: Inspection, whole: WholeJob) -> list[str | None]:
    """Return the jobs from which a fork comes, the last first; None ends those of which one is gone."""
    found: list[str | None] = []
    origin = whole.rest.retry_of
    while origin is not None and origin not in found:
        found.append(origin)
        before = inspection.whole(origin)
        if before is None:
            return [*found, None]
        origin = before.rest.retry_of
    return found
