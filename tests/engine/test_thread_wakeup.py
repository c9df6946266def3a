"""Threads of one interpreter are woken one by one, and all at once when one of them stays away."""

from __future__ import annotations

from tallystick.engine.pending_writes import OneByOne


class Sleeper:
    def __init__(self, woken: list[int], number: int, *, asleep: bool = True) -> None:
        self.asleep = asleep
        self._woken = woken
        self._number = number

    def wake(self) -> None:
        self._woken.append(self._number)


def sleepers(woken: list[int], count: int) -> list[Sleeper]:
    return [Sleeper(woken, number) for number in range(count)]


def test_one_is_woken_and_each_wakes_one_more():
    woken: list[int] = []
    relay = OneByOne()
    relay.start(sleepers(woken, 5))
    assert woken == [0]
    for _ in range(4):
        relay.pass_on()
    assert woken == [0, 1, 2, 3, 4]
    assert not relay
    relay.pass_on()
    assert woken == [0, 1, 2, 3, 4]


def test_who_is_not_asleep_yet_does_not_break_the_chain():
    """Nobody would pass on for it, so it is let through and does not count."""
    woken: list[int] = []
    relay = OneByOne()
    relay.start([Sleeper(woken, 0, asleep=False), *sleepers(woken, 3)[1:]])
    assert woken == [0, 1]


def test_after_a_rescue_everybody_is_woken_at_once_for_a_while():
    woken: list[int] = []
    relay = OneByOne()
    relay.start(sleepers(woken, 4))
    relay.rescue()
    assert woken == [0, 1, 2, 3]
    woken.clear()
    relay.start(sleepers(woken, 4))
    assert woken == [0, 1, 2, 3]
    flushes = 0
    while not relay:
        relay.start(sleepers(woken, 4))
        flushes += 1
    assert flushes > 100
