"""How a batch is taken apart: bundles of one primitive are written by kind, the others one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from tallystick.core.pictures import START
from tallystick.store.api import (
    Bundle,
    ClaimJobs,
    EndAttempt,
    EndJob,
    Primitive,
    RecordEvent,
    RecordStep,
    RenewLeases,
    SubmitJob,
    SubmitJobs,
)

# The order in which a batch writes. Renewals go before everything else, and claims come last, because they
# may take what this batch has just submitted or released.
ORDER: Final[tuple[type[Primitive], ...]] = (
    RenewLeases,
    RecordStep,
    RecordEvent,
    EndAttempt,
    EndJob,
    SubmitJob,
    SubmitJobs,
    ClaimJobs,
)


# Bundles that are written by kind: the kind, and where they stand in the batch.
Kind: TypeAlias = tuple[type[Primitive], list[int]]

_GROUPED: Final = frozenset(ORDER)

# A bundle of one of these needs no second look: nothing in it decides how it is written.
_ALWAYS_GROUPED: Final = frozenset({RenewLeases, RecordStep, RecordEvent, SubmitJob, SubmitJobs, ClaimJobs})

# Bundles of these two travel with the others: the one is written before the other anyway.
_PAIRS: Final = frozenset((RecordStep, last) for last in (EndJob, EndAttempt))


def grouped(batch: Sequence[Bundle], *, children: bool = False) -> tuple[list[int], list[Kind]]:
    """Return the indexes of bundles to decide or to write alone, and of the others by kind in their order.

    A step and the ending it came with stand under both kinds. The ends of jobs that a message woke touch
    other rows too; those of `children` as well, which not every store writes by kind.
    """
    plain: dict[type[Primitive], list[int]] = {}
    alone: list[int] = []
    for index, bundle in enumerate(batch):
        last = bundle[-1]
        kind = type(last)
        if len(bundle) == 1 and kind in _ALWAYS_GROUPED:
            if kind in plain:
                plain[kind].append(index)
            else:
                plain[kind] = [index]
            continue
        if kind not in _GROUPED or (type(last) is EndJob and _touches_others(last, children=children)):
            alone.append(index)
        elif len(bundle) == 1:
            plain.setdefault(kind, []).append(index)
        elif len(bundle) == 2 and (type(bundle[0]), kind) in _PAIRS:
            plain.setdefault(type(bundle[0]), []).append(index)
            plain.setdefault(kind, []).append(index)
        else:
            alone.append(index)
    return alone, [(kind, plain[kind]) for kind in ORDER if kind in plain]


def _touches_others(end: EndJob, *, children: bool) -> bool:
    """Tell whether an end closes more than what began its segment, or more than its own job."""
    return end.waited or end.driver != START or (end.parent is not None and not children)


def parts_of(bundles: Iterable[Bundle], kind: type[Primitive]) -> list[Any]:
    """Return the part of each bundle that is written with others of this kind."""
    return [first if type(first := bundle[0]) is kind else bundle[-1] for bundle in bundles]


def ending_in_lists(batch: Sequence[Bundle], groups: Sequence[Kind]) -> Iterable[str]:
    """Return the jobs whose rows are moved by lists: they are locked with all others, in one order."""
    for kind, indexes in groups:
        if kind in (EndJob, EndAttempt):
            for part in parts_of([batch[index] for index in indexes], kind):
                yield str(part.fence.job_id)


def without_last_steps(batch: Sequence[Bundle], groups: Sequence[Kind]) -> list[Kind]:
    """Return groups without steps that come with the end of their job: that statement has them."""
    kept = [
        (kind, [index for index in indexes if kind is not RecordStep or type(batch[index][-1]) is not EndJob])
        for kind, indexes in groups
    ]
    return [(kind, indexes) for kind, indexes in kept if indexes]


def merged_claims(requests: Sequence[ClaimJobs]) -> list[tuple[ClaimJobs, list[int]]]:
    """Return one search for all claims of each worker, and whose they are; its slots ask one by one."""
    same: dict[ClaimJobs, list[int]] = {}
    for index, request in enumerate(requests):
        same.setdefault(request._replace(limit=0), []).append(index)
    return [
        (whole._replace(limit=sum(requests[index].limit for index in indexes)), indexes)
        for whole, indexes in same.items()
    ]
