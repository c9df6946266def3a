"""Which waiting jobs of a queue may be claimed: slots, tokens and turns, decided from what a store has seen.

A slot is a live lease, of a queue with `hold_slots` also a job that has begun and not ended. A token is spent
by a job when it is claimed for the first time. Keys take turns, and jobs without a key are one more of them;
what has begun goes before what has not, because it holds more than a place in a queue, but not twice before
a job of another key that may begin.

A claim comes a little later than its token. If a job waited for it, the next token does not come later for
that, up to half of the time between two: so a rate is kept by workers that are late. No more than `burst`
jobs begin at once, and with a burst of one no two are nearer to each other than half of that time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from tallystick.core.queues.rows import Limits, QueueTurn, interval_us

REST_MS: Final = 1_000
"""How long a worker leaves a queue alone in which jobs wait, if nothing says more."""

LATE_US_MAX: Final = 2 * REST_MS * 1_000
"""How late a claim may be that makes up for it; a bucket is remembered for as long."""

_SOON_MS: Final = 5
_STRANGE_US: Final = 60_000_000
# More than a queue can ever have of slots or tokens.
_NO_END: Final = 1 << 62

NO_KEY: Final = ""
"""What stands for the key of jobs that have none; no key is empty."""


class Waiting(NamedTuple):
    """A due job of a queue, and whether its claim would be the first, which the rate is charged for.

    `ready_at` is since when it waits.
    """

    job_id: str
    limit_key: str
    first: bool
    ready_at: int


class Slot(NamedTuple):
    """A slot of a queue that is taken, and by which worker."""

    job_id: str
    limit_key: str
    owner: str


class TakenSlot(NamedTuple):
    """The slot of a running job in a queue with limits; if it `holds`, until the job has ended."""

    queue: str
    holds: bool


class QueuePicture(NamedTuple):
    """What a claim sees of a queue, under its lock; `full_us` are the buckets of keys, none is a full one."""

    limits: Limits
    slots: Sequence[Slot]
    turn: QueueTurn
    full_us: Mapping[str, int]
    now_us: int


class DueOfKey(NamedTuple):
    """The due jobs of one key, in the order in which they are to begin."""

    limit_key: str
    jobs: Iterable[Waiting]


_Line: TypeAlias = tuple[str, Iterator[Waiting]]


class Booked(NamedTuple):
    """What the claims of a queue leave behind: whose turn it was, and the buckets that were charged."""

    turn: QueueTurn
    full_us: dict[str, int]


def tokens(full_us: int, rate: str | None, burst: int, now_us: int) -> int:
    """Return how many tokens a bucket holds that is full again at an instant; without a rate, no end of them.

    >>> tokens(0, "10/1s", 3, 0), tokens(150_000, "10/1s", 3, 0), tokens(300_000, "10/1s", 3, 0)
    (3, 1, 0)
    """
    if rate is None:
        return _NO_END
    each = interval_us(rate)
    return max(0, burst - -(-_missing_us(full_us, each, burst, now_us) // each))


def spent(full_us: int, rate: str, burst: int, now_us: int, ready_us: int) -> int:
    """Return when a bucket is full again that had a token taken out, by a job that waits since an instant.

    >>> spent(1_000_000, "10/1s", 1, 1_030_000, 1_030_000), spent(1_000_000, "10/1s", 1, 1_030_000, 900_000)
    (1130000, 1100000)
    """
    each = interval_us(rate)
    late = _late_us(full_us, each, now_us, ready_us)
    return now_us + _missing_us(full_us, each, burst, now_us) - late + each


def _late_us(full_us: int, each: int, now_us: int, ready_us: int) -> int:
    """Return by how much a claim is late: a job waited, the bucket was full, and so overflowed.

    What counts is at most half of the time between two tokens. A bucket that was never charged, or that no
    worker has looked at for longer than one rests, has not waited for a claim.
    """
    late = now_us - max(full_us, ready_us)
    return min(late, each // 2) if full_us > 0 and 0 < late <= LATE_US_MAX else 0


def next_token_us(full_us: int, rate: str, burst: int, now_us: int) -> int:
    """Return when a bucket has a token, at the latest now if it has one.

    >>> next_token_us(300_000, "10/1s", 3, 0), next_token_us(100_000, "10/1s", 1, 0)
    (100000, 100000)
    """
    each = interval_us(rate)
    return now_us + max(0, _missing_us(full_us, each, burst, now_us) - (burst - 1) * each)


def _missing_us(full_us: int, each: int, burst: int, now_us: int) -> int:
    """Return in which time a bucket is full again.

    A bucket begins anew when its rate changes. So one that is emptier than empty, by more than clocks of
    processes differ, was charged before the clock was set back: it is taken for full, or nothing would begin
    for that long.
    """
    missing = max(0, full_us - now_us)
    return 0 if missing > burst * each + _STRANGE_US else missing


def rest_ms(
    limits: Limits,
    turn: QueueTurn,
    soonest_us: int | None,
    taken: int,
    now_us: int,
    *,
    asked_us: int = 0,
    most_ms: int = REST_MS,
) -> int:
    """Return how long a worker may leave a queue alone in which jobs wait that it could not claim.

    That is until there is a token; `soonest_us` is the first bucket of a key to be full. A token that came
    after the worker has asked for its last claim, `asked_us` ago, may have been too late for it, so there is
    no rest. Slots that others give back are no news to this worker, so it looks again after a while.
    """
    if limits.concurrency is not None and taken >= limits.concurrency:
        return most_ms
    buckets = []
    if limits.rate is not None:
        buckets.append((turn.full_us, limits.rate))
    if limits.key_rate is not None and soonest_us is not None:
        buckets.append((soonest_us, limits.key_rate))
    for full_us, rate in buckets:
        wait_us = next_token_us(full_us, rate, limits.burst, now_us) - now_us
        if wait_us > 0:
            return min(most_ms, -(-wait_us // 1_000))
        if now_us - asked_us < full_us - (limits.burst - 1) * interval_us(rate) <= now_us:
            return 0
    # There are tokens, and the last claim could not use them; by the next one it may be otherwise.
    rates = [interval_us(rate) for rate in (limits.rate, limits.key_rate) if rate is not None]
    return min([most_ms, *(max(_SOON_MS, each // 1_000) for each in rates)])


def choose(
    picture: QueuePicture,
    begun: Iterable[Waiting],
    lines: Iterable[DueOfKey],
    wanted: int,
    owner: str,
    served: str | None = None,
) -> list[Waiting]:
    """Return the jobs that a worker may claim now, at most as many as it wants, in their order.

    `begun` are jobs that were claimed before, the longest waiting first. `lines` are those that were not, key
    by key, beginning behind the key that had the last turn. `served` is the key of a job that had begun, if
    such a one was claimed last: then one of another key may begin first. So a key whose many jobs are woken
    keeps no other from its turn.
    """
    room = _RoomLeft(picture, owner)
    found: list[Waiting] = []
    # Keys are looked for no further than they are wanted; those that had a turn may have another.
    waiting = _begin_another(room, ((key, iter(jobs)) for key, jobs in lines), found, served)
    for job in begun:
        if len(found) == wanted or room.is_full:
            break
        if room.take(job):
            found.append(job)
    while len(found) < wanted and not room.is_full:
        waiting = _round(room, waiting, found, wanted)
        if not waiting:
            break
    return found


def _begin_another(
    room: _RoomLeft, waiting: Iterator[_Line], found: list[Waiting], served: str | None
) -> Iterable[_Line]:
    """Let a job of another key than `served` begin, if that is one; return the keys that may have a turn."""
    if served is None or room.is_full:
        return waiting
    passed: list[_Line] = []
    for key, jobs in waiting:
        if key == served:
            passed.append((key, jobs))
        elif room.has_room_for(key) and (job := next(jobs, None)) is not None and room.take(job):
            found.append(job)
            # That key comes last, and the one that was passed is next.
            return chain(passed, waiting, [(key, jobs)])
    return passed


def _round(room: _RoomLeft, waiting: Iterable[_Line], found: list[Waiting], wanted: int) -> list[_Line]:
    """Give each key one turn, and return the keys that may have another."""
    served = []
    for key, jobs in waiting:
        job = next(jobs, None) if room.has_room_for(key) else None
        if job is not None and room.take(job):
            found.append(job)
            served.append((key, jobs))
        if len(found) == wanted or room.is_full:
            break
    return served


def book(picture: QueuePicture, claimed: Sequence[Waiting]) -> Booked:
    """Return what claims leave behind: tokens are spent for first claims, and the turn goes on."""
    limits, turn, full = picture.limits, picture.turn, dict[str, int]()
    for job in claimed:
        if not job.first:
            continue
        full_us, ready_us = turn.full_us, job.ready_at * 1_000
        if limits.rate is not None:
            full_us = spent(full_us, limits.rate, limits.burst, picture.now_us, ready_us)
        turn = QueueTurn(job.limit_key, full_us)
        if limits.key_rate is not None and job.limit_key != NO_KEY:
            before = full.get(job.limit_key, picture.full_us.get(job.limit_key, 0))
            full[job.limit_key] = spent(before, limits.key_rate, limits.burst, picture.now_us, ready_us)
    return Booked(turn, full)


class _RoomLeft:
    """The slots and tokens that are left, while jobs are chosen."""

    def __init__(self, picture: QueuePicture, owner: str) -> None:
        limits = self._limits = picture.limits
        self._picture = picture
        self._held = {slot.job_id: slot.owner == owner for slot in picture.slots}
        self._slots = _left(limits.concurrency, len(picture.slots))
        self._mine = _left(limits.worker_concurrency, sum(slot.owner == owner for slot in picture.slots))
        self._of_key = Counter(slot.limit_key for slot in picture.slots)
        self._tokens = tokens(picture.turn.full_us, limits.rate, limits.burst, picture.now_us)
        self._of_bucket: dict[str, int] = {}

    @property
    def is_full(self) -> bool:
        """Tell whether no job can be claimed, whatever its key; one that holds a slot may go on."""
        return not self._limits.hold_slots and (self._slots <= 0 or self._mine <= 0)

    def has_room_for(self, key: str, *, first: bool = True) -> bool:
        """Tell whether a job of this key may have a slot, and for its `first` claim a token."""
        if self._slots <= 0 or self._mine <= 0 or (first and self._tokens <= 0):
            return False
        if key == NO_KEY:
            return True
        limit = self._limits.per_key
        return (limit is None or self._of_key[key] < limit) and (not first or self._bucket(key) > 0)

    def take(self, job: Waiting) -> bool:
        """Take a slot for a job, and for its first claim a token; tell whether both were to be had."""
        if job.job_id in self._held:
            if self._mine <= 0 and not self._held[job.job_id]:
                return False
            self._mine -= not self._held[job.job_id]
            return True
        key = job.limit_key
        if not self.has_room_for(key, first=job.first):
            return False
        if job.first:
            self._tokens -= 1
            self._of_bucket[key] = self._bucket(key) - 1
        self._slots -= 1
        self._mine -= 1
        self._of_key[key] += 1
        return True

    def _bucket(self, key: str) -> int:
        if key not in self._of_bucket:
            limits, full_us = self._limits, self._picture.full_us.get(key, 0)
            self._of_bucket[key] = tokens(full_us, limits.key_rate, limits.burst, self._picture.now_us)
        return self._of_bucket[key]


def _left(limit: int | None, taken: int) -> int:
    return _NO_END if limit is None else limit - taken
