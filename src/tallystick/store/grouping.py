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


def grouped(batch: Sequence[Bundle]) -> tuple[list[int], list[tuple[type[Primitive], list[int]]]]:
    """Return the indexes of bundles to write alone, and of the others by kind in the order of writing."""
    plain: dict[type[Primitive], list[int]] = {}
    alone: list[int] = []
    for index, bundle in enumerate(batch):
        kind = type(bundle[0])
        by_itself = len(bundle) > 1 or kind not in ORDER or getattr(bundle[0], "alone", False)
        (alone if by_itself else plain.setdefault(kind, [])).append(index)
    return alone, [(kind, plain[kind]) for kind in ORDER if kind in plain]


def merged_claims(requests: Sequence[ClaimJobs]) -> list[tuple[ClaimJobs, list[int]]]:
    """Return one search for all claims of each worker, and whose they are; its slots ask one by one."""
    same: dict[ClaimJobs, list[int]] = {}
    for index, request in enumerate(requests):
        same.setdefault(request._replace(limit=0), []).append(index)
    return [
        (whole._replace(limit=sum(requests[index].limit for index in indexes)), indexes)
        for whole, indexes in same.items()
    ]
