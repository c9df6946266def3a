"""How a batch is taken apart: bundles of one primitive are written by kind, the others one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.store.api import (
    Bundle,
    ClaimJobs,
    CountDown,
    Deliver,
    EndAttempt,
    EndJob,
    Primitive,
    RecordEvent,
    RecordStep,
    RenewLeases,
    SubmitJob,
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
    CountDown,
    Deliver,
    ClaimJobs,
)


# A bundle of one of these needs no second look: nothing in it decides how it is written.
_ALWAYS_GROUPED: Final = frozenset({RenewLeases, RecordStep, RecordEvent, SubmitJob, ClaimJobs})

# Bundles of these two travel with the others: the one is written before the other anyway.
_PAIRS: Final = frozenset({(RecordStep, EndJob), (RecordStep, EndAttempt)})


def grouped(
    batch: Sequence[Bundle], *, children_alone: bool = False
) -> tuple[list[int], list[tuple[type[Primitive], list[int]]]]:
    """Return the indexes of bundles to write alone, and of the others by kind in the order of writing.

    A step and the ending it came with stand under both kinds. The end of a child also touches the rows of its
    parent, which not every store writes by kind.
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
        by_itself = getattr(last, "alone", False) or (
            children_alone and getattr(last, "parent", None) is not None
        )
        if by_itself or kind not in ORDER:
            alone.append(index)
        elif len(bundle) == 1:
            plain.setdefault(kind, []).append(index)
        elif tuple(map(type, bundle)) in _PAIRS:
            plain.setdefault(RecordStep, []).append(index)
            plain.setdefault(kind, []).append(index)
        else:
            alone.append(index)
    return alone, [(kind, plain[kind]) for kind in ORDER if kind in plain]


def part_of(bundle: Bundle, kind: type[Primitive]) -> Primitive:
    """Return the part of a bundle that is written with others of this kind."""
    first = bundle[0]
    return first if type(first) is kind else bundle[-1]


def merged_claims(requests: Sequence[ClaimJobs]) -> list[tuple[ClaimJobs, list[int]]]:
    """Return one search for all claims of each worker, and whose they are; its slots ask one by one."""
    same: dict[ClaimJobs, list[int]] = {}
    for index, request in enumerate(requests):
        same.setdefault(request._replace(limit=0), []).append(index)
    return [
        (whole._replace(limit=sum(requests[index].limit for index in indexes)), indexes)
        for whole, indexes in same.items()
    ]
