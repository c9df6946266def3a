"""What limits of a queue allow, over long random lives of it: no excess, no token twice, no key forgotten."""

from __future__ import annotations

from collections import Counter
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.queues.admitting import (
    DueOfKey,
    QueuePicture,
    Slot,
    Waiting,
    book,
    choose,
    next_token_us,
    spent,
    tokens,
)
from tallystick.core.queues.rows import Limits, QueueTurn, interval_us

small = st.one_of(st.none(), st.integers(1, 4))
limits = st.builds(
    Limits,
    concurrency=small,
    per_key=small,
    worker_concurrency=small,
    rate=st.sampled_from([None, "3/1s", "50/1s"]),
    key_rate=st.sampled_from([None, "2/1s"]),
    burst=st.integers(1, 3),
    hold_slots=st.booleans(),
)
keys = st.sampled_from(["", "a", "b", "c"])
moves = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), keys),
        st.tuples(st.just("look"), st.integers(1, 5), st.sampled_from(["w1", "w2"])),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.integers(0, 9)),
        st.tuples(st.just("pass"), st.integers(1, 900)),
    ),
    max_size=60,
)


class Life:
    """A queue in memory: what a store keeps of it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.now_us = 0
        self.turn, self.full_us = QueueTurn(), dict[str, int]()
        self.fresh: dict[str, list[Waiting]] = {}
        self.woken: list[Waiting] = []
        self.running: dict[str, Slot] = {}
        self.held: dict[str, Slot] = {}
        self.began: list[tuple[int, str]] = []
        self.served: str | None = None
        self._names = count(1)

    def submit(self, key: str) -> None:
        self.fresh.setdefault(key, []).append(
            Waiting(f"j{next(self._names)}", key, True, self.now_us // 1_000)
        )

    def look(self, wanted: int, owner: str) -> list[Waiting]:
        ring = sorted(self.fresh)
        ring = [key for key in ring if key > self.turn.turn] + [key for key in ring if key <= self.turn.turn]
        slots = list({**self.held, **self.running}.values())
        picture = QueuePicture(self.limits, slots, self.turn, self.full_us, self.now_us)
        lines = (DueOfKey(key, list(self.fresh[key])) for key in ring)
        found = choose(picture, list(self.woken), lines, wanted, owner, self.served)
        self.turn, charged = book(picture, found)
        self.full_us.update(charged)
        for job in found:
            if job.first:
                self.fresh[job.limit_key].remove(job)
                self.began.append((self.now_us, job.limit_key))
            else:
                self.woken.remove(job)
            self.served = None if job.first else job.limit_key
            slot = Slot(job.job_id, job.limit_key, owner)
            self.running[job.job_id] = slot
            if self.limits.hold_slots:
                self.held[job.job_id] = slot
        return found

    def end(self, place: int) -> None:
        if name := self._running(place):
            del self.running[name]
            self.held.pop(name, None)

    def wait(self, place: int) -> None:
        """A job waits, and is woken at once."""
        if name := self._running(place):
            slot = self.running.pop(name)
            self.woken.append(Waiting(name, slot.limit_key, False, self.now_us // 1_000))

    def _running(self, place: int) -> str:
        return sorted(self.running)[place % len(self.running)] if self.running else ""


@given(limits, moves)
def test_no_limit_is_exceeded_whatever_happens(limits: Limits, moves):
    life = Life(limits)
    for name, *about in moves:
        if name == "pass":
            life.now_us += about[0] * 1_000
            continue
        getattr(life, name)(*about)
        slots = {**life.held, **life.running}.values()
        assert limits.concurrency is None or len(slots) <= limits.concurrency
        per_key = Counter(slot.limit_key for slot in slots if slot.limit_key)
        assert limits.per_key is None or max(per_key.values(), default=0) <= limits.per_key
        mine = Counter(slot.owner for slot in life.running.values())
        assert limits.worker_concurrency is None or max(mine.values(), default=0) <= limits.worker_concurrency
    began = [at for at, _key in life.began]
    assert within_rate(began, limits.rate, limits.burst)
    for key in {key for _at, key in life.began if key}:
        assert within_rate([at for at, of in life.began if of == key], limits.key_rate, limits.burst)


def within_rate(began: list[int], rate: str | None, burst: int) -> bool:
    """Tell whether in no stretch of time more jobs began than the rate gives, a burst, and half of one."""
    if rate is None:
        return True
    each = interval_us(rate)
    return all(
        number <= burst + (2 * (last - first) + each) // (2 * each)
        for place, first in enumerate(began)
        for number, last in enumerate(began[place:], start=1)
    )


@given(moves)
def test_without_limits_everything_that_waits_is_claimed(moves):
    life = Life(Limits())
    for name, *about in moves:
        getattr(life, name)(*about) if name != "pass" else None
    life.look(1_000, "w1")
    assert not life.woken
    assert not any(life.fresh.values())


def test_a_key_with_many_jobs_does_not_delay_the_first_job_of_another():
    life = Life(Limits(concurrency=1))
    for _ in range(1_000):
        life.submit("many")
    (running,) = life.look(1, "w1")
    life.submit("one")
    life.end(0)
    assert running.limit_key == "many"
    assert [job.limit_key for job in life.look(1, "w1")] == ["one"]


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 5))
def test_a_bucket_says_when_it_has_a_token(full_us: int, now_us: int, burst: int):
    rate = "7/1s"
    at = max(now_us, next_token_us(full_us, rate, burst, now_us))
    assert tokens(full_us, rate, burst, at) >= 1
    if at > now_us:
        assert tokens(full_us, rate, burst, now_us) == 0
    for ready_us in (0, at):
        left = tokens(spent(full_us, rate, burst, at, ready_us), rate, burst, at)
        assert left == tokens(full_us, rate, burst, at) - 1


def waiting(*names: str, first: bool = True) -> list[Waiting]:
    """Return jobs whose first letter is their key."""
    return [Waiting(name, name[0], first, 0) for name in names]


def test_behind_a_job_that_had_begun_one_of_another_key_begins_and_the_rest_as_always():
    picture = QueuePicture(Limits(), [], QueueTurn(), {}, 0)
    lines = [DueOfKey(key, waiting(f"{key}1", f"{key}2")) for key in "abc"]
    begun = waiting("a7", "a8", first=False)
    for served, wanted, expected in (
        (None, 3, "a7 a8 a1"),
        ("a", 1, "b1"),
        ("a", 8, "b1 a7 a8 a1 c1 b2 a2 c2"),
        ("b", 8, "a1 a7 a8 b1 c1 a2 b2 c2"),
    ):
        found = choose(picture, begun, lines, wanted, "w1", served)
        assert " ".join(job.job_id for job in found) == expected
    found = choose(picture, begun, lines[:1], 8, "w1", "a")
    assert " ".join(job.job_id for job in found) == "a7 a8 a1 a2"
    full = picture._replace(limits=Limits(concurrency=1), slots=[Slot("x", "x", "w2")])
    assert choose(full, begun, lines, 8, "w1", "a") == []
