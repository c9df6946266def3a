"""Whether the books of a store are true: every job by itself, and what only shows over all of them.

`audit` judges jobs. Here are the rules that need more than one: rows without a job, reservations and tags
without the job that they name, the log of removals, and what people did. Every read is a page and takes no
snapshot, so workers are not held up, however large the store is. What does not agree is looked at again
before it is told, because rows may have moved between two reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Final, TypeVar

import msgspec

from tallystick.core.audit.book import FINDINGS_KEPT_MAX, Finding
from tallystick.core.audit.removals import LogEnd, PrunedRow, judge_log
from tallystick.core.effects.kept_keys import judge_kept, line_of
from tallystick.core.remote.rows import place_of_step
from tallystick.core.watching.acts import ActRow, judge_acts
from tallystick.engine.audit.jobs import Audit, audit, check_job
from tallystick.engine.audit.sealing import compare
from tallystick.engine.audit.seals import Seal
from tallystick.engine.audit.settings import check_settings
from tallystick.errors import BadInput, NotFound, StoreError
from tallystick.store.api import Store
from tallystick.store.inspection import Inspection, KeptKey, Reserved

_PAGE: Final = 500
L = TypeVar("L", PrunedRow, ActRow)


def verify(
    store: Store,
    *,
    job_id: str | None = None,
    since: int | None = None,
    sealed: Seal | None = None,
    on_page: Callable[[Audit], None] | None = None,
) -> Audit:
    """Check one job, those that were written since an instant, or everything; and compare with a seal."""
    if job_id is not None and sealed is not None:
        raise BadInput("a seal is about the whole store: compare it without naming a job", job_id=job_id)
    inspection = store.inspect()
    if job_id is not None:
        return _one(inspection, job_id)
    done = audit(store, since=since, on_page=on_page)
    parts = [beyond_jobs(inspection), _read("settings", check_settings(store))]
    if sealed is not None:
        parts.append(_read("seal", compare(store, sealed)))
    for finding in chain.from_iterable(parts):
        done.findings_total += 1
        if len(done.findings) < FINDINGS_KEPT_MAX:
            done.findings.append(finding)
    return done


def _one(inspection: Inspection, job_id: str) -> Audit:
    book = inspection.book(job_id)
    if book is None:
        gone = inspection.removals_of(job_id)
        about = f"; its books were removed at {gone[-1].at} by {gone[-1].who}" if gone else ""
        raise NotFound(f"there is no job {job_id}{about}", job_id=job_id)
    done = Audit()
    done.add(check_job(inspection, book, inspection.lease_clock()))
    return done


def beyond_jobs(inspection: Inspection) -> Iterator[Finding]:
    """Give what is wrong that no job shows by itself."""
    removals = judge_log(_log(inspection.removals), LogEnd())
    acts = judge_acts(_log(inspection.acts_log), LogEnd(), partial(_is_removed, inspection))
    yield from _read("strays", _strays(inspection))
    yield from _read("reservations", _reservations(inspection))
    yield from _read("tags", _tags(inspection))
    yield from _read("effects", _keys(inspection))
    yield from _read("effects", _kept_keys(inspection))
    yield from _read("removals", (Finding(job_id, "removals", words) for job_id, words in removals))
    yield from _read("acts", (Finding(job_id, "acts", words) for job_id, words in acts))


def _read(check: str, found: Iterator[Finding]) -> Iterator[Finding]:
    """Give what one rule finds; rows of which it can make nothing are a finding, and the others go on."""
    try:
        yield from found
    except (StoreError, BadInput):
        raise
    except Exception as error:  # noqa: BLE001 (no rule was written for rows that were tampered with)
        yield Finding("", check, f"nothing can be made of its rows: {type(error).__name__}: {error}")


def _is_removed(inspection: Inspection, job_id: str) -> bool:
    return any(line.whole for line in inspection.removals_of(job_id))


def _log(look: Callable[..., list[L]]) -> Iterator[L]:
    """Give a chain line by line, from its beginning, and what stands where no line can."""
    after, more = -(2**63), True
    while more:
        page = look(after=after, limit=_PAGE)
        yield from page
        more = len(page) == _PAGE
        after = page[-1].seq if page else after


def _strays(inspection: Inspection) -> Iterator[Finding]:
    """Give rows whose job is gone; one statement sees both, so what it says was true at once."""
    after, more = "", True
    while more:
        page = inspection.strays(after=after, limit=_PAGE)
        for job_id, known in page:
            if not known:
                why = (
                    "which was removed"
                    if _is_removed(inspection, job_id)
                    else "which is not there, and no removal is noted"
                )
                yield Finding(job_id, "strays", f"there are rows of this job, {why}")
        more = len(page) == _PAGE
        after = page[-1][0] if page else after


def _keys(inspection: Inspection) -> Iterator[Finding]:
    """Give keys of effects without their attempt; a key outlives its job, and the turns of a loop."""
    after, more = "", True
    while more:
        page = inspection.kept_keys(after=after, limit=_PAGE)
        for key in page:
            if not key.has_attempt and not _is_left(inspection, key):
                yield Finding(
                    key.job_id, "effects", f"there is a key of {key.exec_id}, and nothing else of it"
                )
        more = len(page) == _PAGE
        after = page[-1].exec_id if page else after


def _kept_keys(inspection: Inspection) -> Iterator[Finding]:
    """Give removals that have left other keys of effects than are kept, or went by right since."""
    after, more = "", True
    while more:
        page = inspection.removed_with_keys(after=after, limit=_PAGE)
        for job_id in page:
            yield from (Finding(job_id, "effects", words) for words in _wrong_kept(inspection, job_id))
        more = len(page) == _PAGE
        after = page[-1] if page else after


def _wrong_kept(inspection: Inspection, job_id: str) -> list[str]:
    """Say what is wrong with the keys of one job; lines that are alike before and after held between."""
    lines = inspection.removals_of(job_id)
    while found := list(judge_kept(lines, inspection.keys_of(job_id))):
        again = inspection.removals_of(job_id)
        if again == lines:
            break
        lines = again
    return found


def _is_left(inspection: Inspection, key: KeptKey) -> bool:
    """Tell whether the log of removals names the job of a key, or the turn in which it was taken.

    A line that says that no key was left names none.
    """
    place, lines = place_of_step(key.unit), inspection.removals_of(key.job_id)
    line = None if place is None else line_of(lines, place[0])
    is_gone = key.has_job or any(each.whole for each in lines)
    return line is not None and line.keys != "" and is_gone


def _reservations(inspection: Inspection) -> Iterator[Finding]:
    """Give reservations that are not those of the job that they name."""
    after, more = ("", "", ""), True
    while more:
        page = inspection.reserved(after=after, limit=_PAGE)
        for one in page:
            kept = one.kept
            if not _is_own(one):
                yield Finding(
                    kept.job_id, "reservations", f"the {kept.scope} {kept.value!r} is not that of the job"
                )
        more = len(page) == _PAGE
        after = page[-1].kept.where if page else after


def _is_own(one: Reserved) -> bool:
    """Tell whether the job that a reservation names is known by it."""
    value = one.hash if one.key is None else one.key
    scope = "content" if one.key is None else "key"
    return one.kept.where == (one.tenant_id, scope, value) and one.kept.content_hash == one.hash


def _tags(inspection: Inspection) -> Iterator[Finding]:
    """Give tags that the job to which they lead does not have."""
    after, more = ("", ""), True
    while more:
        page = inspection.tags(after=after, limit=_PAGE)
        for tag, job_id, tags in page:
            after = (tag, job_id)
            if tags is None or tag not in msgspec.json.decode(tags):
                yield Finding(job_id, "tags", f"it can be found by the tag {tag!r}, and does not have it")
        more = len(page) == _PAGE
