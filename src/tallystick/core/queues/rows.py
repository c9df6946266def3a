"""A queue as it is kept: what a program declares about it, and what a person has set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, get_type_hints

import msgspec

from tallystick.core.durations import duration_ms
from tallystick.errors import BadInput

Order = Literal["priority", "fifo"]

KEYS_LOOKED_AT_MAX: Final = 1_024
"""How many keys of a queue one look goes past at most; the next one begins where it ended."""

_SLOTS_MAX: Final = 1_000_000
_US: Final = 1_000


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of a queue may run at once, and how fast its jobs may begin. None is no limit."""

    # How many jobs of the queue have a slot at once: in all, per key, and in one worker.
    concurrency: int | None = None
    per_key: int | None = None
    worker_concurrency: int | None = None
    # How many jobs may begin, as "100/1m": of the queue, and of each key. A burst may begin at once.
    rate: str | None = None
    key_rate: str | None = None
    burst: int = 1
    order: Order = "priority"
    # A job that waits keeps its slot, from its first claim to its end.
    hold_slots: bool = False

    def checked(self) -> Limits:
        """Return these limits, or raise `BadInput` and say what is wrong with them."""
        for name in ("concurrency", "per_key", "worker_concurrency", "burst"):
            value = getattr(self, name)
            if value is None and name != "burst":
                continue
            if not (_is_whole(value) and 1 <= value <= _SLOTS_MAX):
                none = "" if name == "burst" else ", or None"
                raise BadInput(f"{name}={value!r}: it is a whole number from 1 to {_SLOTS_MAX:,}{none}")
        for name in ("rate", "key_rate"):
            if getattr(self, name) is not None:
                interval_us(getattr(self, name))
        if self.order not in ("priority", "fifo"):
            raise BadInput(f"order={self.order!r}: it is 'priority' or 'fifo'")
        if not isinstance(self.hold_slots, bool):
            raise BadInput(f"hold_slots={self.hold_slots!r}: it is True or False")
        return self


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def interval_us(rate: str) -> int:
    """Return how many microseconds are between two jobs at a rate; rounded so that it is never exceeded.

    >>> interval_us("100/1m"), interval_us("7/1s")
    (600000, 142858)
    """
    number, slash, period = str(rate).partition("/")
    if not (slash and number.isascii() and number.isdigit() and int(number)):
        raise BadInput(f"rate={rate!r}: write how many jobs may begin in which time, for example '100/1m'")
    period_us = duration_ms(period) * _US
    if period_us <= 0:
        raise BadInput(f"rate={rate!r}: the period must be longer than zero, as in 100/1m")
    return max(1, -(-period_us // int(number)))


class Queue(NamedTuple):
    """A row of `queues`. Programs change what is declared, people what is chosen; the latter wins."""

    queue: str
    declared: str | None
    chosen: str | None
    paused_by: str | None
    paused_at: int | None
    created_at: int
    rev: int

    @property
    def limits(self) -> Limits:
        """Return the limits that are in force."""
        return _read({**_fields(self.declared), **_fields(self.chosen)})

    @property
    def set_by_person(self) -> dict[str, object]:
        """Return the limits that a person has set."""
        return _fields(self.chosen)


def refills(before: Limits, after: Limits) -> bool:
    """Tell whether buckets begin anew, full: what they lack was counted at another rate.

    >>> refills(Limits(rate="1/1h"), Limits(rate="10/1s")), refills(Limits(), Limits(concurrency=3))
    (True, False)
    """
    return any(getattr(before, name) != getattr(after, name) for name in ("rate", "key_rate", "burst"))


class QueueTurn(NamedTuple):
    """Where the claims of a queue stand: the key that was served last, and when its bucket is full again."""

    turn: str = ""
    full_us: int = 0


class SaveQueue(NamedTuple):
    """Put a queue in the place of the one that was seen, by its revision; a new one has seen none.

    From then on claims of its jobs keep its limits, and jobs of it that run already have slots. If it was
    changed meanwhile nothing is written, and the outcome is `QueueChanged`.
    """

    queue: Queue
    seen: int | None


def _fields(text: str | None) -> dict[str, object]:
    return {} if text is None else msgspec.json.decode(text, type=dict[str, object])


def _read(fields: Mapping[str, object]) -> Limits:
    return msgspec.convert(fields, Limits).checked()


LIMIT_NAMES: Final = tuple(get_type_hints(Limits))


def written(limits: Limits) -> str:
    """Return limits as a declaration keeps them."""
    return msgspec.json.encode(limits).decode()


def declared(seen: Queue | None, queue: str, limits: Limits, now: int) -> Queue | None:
    """Return a queue as a program declares it, or None if it stands so already; the last start wins."""
    text = written(limits.checked())
    if seen is None:
        return Queue(queue, text, None, None, None, now, 1)
    return None if seen.declared == text else seen._replace(declared=text, rev=seen.rev + 1)


def chosen(seen: Queue | None, queue: str, changes: Mapping[str, object], now: int) -> Queue:
    """Return a queue for which a person has set some limits; the others stay as they are."""
    _known(changes)
    seen = seen or Queue(queue, None, None, None, None, now, 0)
    fields = {**_fields(seen.chosen), **changes}
    # Made by name, which looks at no types, so that a wrong one is told as for a declaration.
    msgspec.structs.replace(Limits(), **{**_fields(seen.declared), **fields}).checked()
    return seen._replace(chosen=msgspec.json.encode(fields, order="sorted").decode(), rev=seen.rev + 1)


def reset(seen: Queue) -> Queue:
    """Return a queue for which what was declared counts again; a pause stays."""
    return seen._replace(chosen=None, rev=seen.rev + 1)


def paused(seen: Queue | None, queue: str, by: str, now: int) -> Queue:
    """Return a queue of which no job is claimed; the first pause stays."""
    seen = seen or Queue(queue, None, None, None, None, now, 0)
    if seen.paused_by is not None:
        return seen
    return seen._replace(paused_by=by, paused_at=now, rev=seen.rev + 1)


def resumed(seen: Queue) -> Queue:
    """Return a queue whose jobs may be claimed again."""
    return seen._replace(paused_by=None, paused_at=None, rev=seen.rev + 1)


def _known(names: Iterable[str]) -> None:
    strange = [name for name in names if name not in LIMIT_NAMES]
    if strange:
        raise BadInput(f"a queue has no limit {strange[0]!r}: it has {', '.join(LIMIT_NAMES)}")
