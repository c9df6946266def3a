"""How fast jobs end: by all workers, by each of them, and in the queues that they serve.

Workers report how many jobs they have ended, not of which queue. Where they serve one queue alone its rate is
known; where they serve several, it is known that none of these is faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tallystick.core.remote.keys import listed
from tallystick.core.watching.rows import WorkerRow

MINUTES: Final = 5
_MINUTE_MS: Final = 60_000


class Rates(NamedTuple):
    """Jobs ended per minute: in all, by worker, and as the words that a page has for a queue."""

    all: float
    of_workers: dict[str, float]
    of_queues: dict[str, str]


def since_ms(now: int) -> int:
    """Return since when ended jobs are counted: since the beginning of a minute, as workers report them."""
    return (now // _MINUTE_MS - MINUTES) * _MINUTE_MS


def rates_of(ended: Mapping[str, int], workers: Sequence[WorkerRow], now: int) -> Rates:
    """Return the rates of workers that have ended so many jobs."""
    minutes = (now - since_ms(now)) / _MINUTE_MS
    each = {worker.owner: ended.get(worker.owner, 0) / minutes for worker in workers}
    serving: dict[str, list[tuple[float, bool]]] = {}
    for worker in workers:
        queues = listed(worker.queues)
        for queue in queues:
            serving.setdefault(queue, []).append((each[worker.owner], len(queues) == 1))
    return Rates(
        sum(ended.values()) / minutes, each, {name: _of_queue(those) for name, those in serving.items()}
    )


def rate_text(rate: float) -> str:
    """Return a rate with as many digits as it is worth.

    >>> rate_text(0.0), rate_text(0.04), rate_text(2.26), rate_text(1234.5)
    ('0', '< 0.1', '2.3', '1,234')
    """
    if 0 < rate < 0.1:
        return "< 0.1"
    return f"{rate:,.0f}" if rate >= 10 or rate == 0 else f"{rate:.1f}"


def _of_queue(those: Sequence[tuple[float, bool]]) -> str:
    alone = sum(rate for rate, is_alone in those if is_alone)
    shared = sum(rate for rate, is_alone in those if not is_alone)
    return f"≤ {rate_text(alone + shared)}" if shared else rate_text(alone)
