"""The order of a batch: what travels together, and what is written alone in its place between."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.store.api import Bundle, Deliver, EndJob, Primitive, RecordStep, RenewLeases

Stage = tuple[type[Primitive] | None, list[int]]


def stages_of(
    batch: Sequence[Bundle], alone: list[int], groups: list[tuple[type[Primitive], list[int]]]
) -> list[Stage]:
    """Return what is written together, and what alone, in the order of writing.

    A step that comes with the end of its job is written by the statement that ends it, under the same fence.
    """
    groups = [
        (kind, [index for index in indexes if kind is not RecordStep or type(batch[index][-1]) is not EndJob])
        for kind, indexes in groups
    ]
    groups = [group for group in groups if group[1]]
    first: list[Stage] = [group for group in groups if group[0] is RenewLeases]
    rest: list[Stage] = [group for group in groups if group[0] is not RenewLeases]
    middle: list[Stage] = [(None, alone)] if alone else []
    return [
        *first,
        *middle,
        *((None, indexes) if kind is Deliver else (kind, indexes) for kind, indexes in rest),
    ]


def first_held(bundle: Bundle) -> str:
    """Return the job whose row a bundle takes last of all, so that flushes of several processes queue up."""
    first = bundle[0]
    if isinstance(first, EndJob) and first.parent is not None:
        return first.parent[0]
    fence = getattr(first, "fence", None)
    return str(fence.job_id if fence is not None else getattr(first, "job_id", ""))
