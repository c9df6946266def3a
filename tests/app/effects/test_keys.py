"""Keys that a fork has for itself, and keys that a refusal keeps."""

from __future__ import annotations

import pytest

from tallystick import JobFailed, Key
from tallystick.errors import IdempotencyConflict
from tallystick.testing.stepping import check_books


class Declined(Exception):
    """What the provider says."""


@pytest.fixture
def acted():
    return []


def keys(app) -> list[tuple]:
    with app.connect() as db:
        return [
            tuple(row) for row in db.execute("select key, outcome from effect_keys order by created_at, key")
        ]


@pytest.mark.parametrize("keep", [False, True])
def test_a_refusal_frees_its_key_unless_it_is_to_keep_it(timed, hand, clock, acted, keep):
    @timed.effect(key="{order}", raises=[Declined], keep_refusals=keep)
    def charge(key: Key, order: int) -> str:
        acted.append(key)
        if len(acted) == 1:
            raise Declined("no money")
        return "paid"

    @timed.workflow
    def buy(order: int) -> str:
        try:
            return charge(order)
        except Declined as declined:
            return str(declined)

    results = []
    for _one in range(2):
        job = buy.submit(7)
        clock.advance(1)
        assert hand.work() == "EndJob"
        results.append(job.result(1))
    fork = job.fork(at="charge")
    hand.work()
    assert [*results, fork.result(1)] == (["no money"] * 3 if keep else ["no money", "paid", "paid"])
    assert keys(timed) == [("7", "REFUSED")] + ([] if keep else [("7", "HAPPENED")])
    assert (len(acted), check_books(timed)) == (1 if keep else 2, [])


def test_a_fork_with_fresh_keys_acts_again(timed, hand, clock, acted):
    @timed.effect(key="{order}")
    def charge(key: Key, order: int) -> int:
        acted.append(key)
        return len(acted)

    @timed.workflow
    def buy(order: int) -> int:
        return charge(order)

    job = buy.submit(7)
    hand.work()
    clock.advance(1)
    fresh = job.fork(at="charge", fresh_keys=True, id="once")
    assert (hand.work(), fresh.result(1), acted) == ("EndJob", 2, ["7", f"7:{fresh.id}"])
    # Under its id it is the same fork, and not another one.
    assert job.fork(at="charge", fresh_keys=True, id="once").id == fresh.id
    with pytest.raises(IdempotencyConflict):
        job.fork(at="charge", id="once")
    # A fork of the fork has the keys that all have, unless it is to have its own again.
    plain = fresh.fork(at="charge")
    assert (hand.work(), plain.result(1), len(acted)) == ("EndJob", 1, 2)
    assert check_books(timed) == []


@pytest.mark.parametrize("who", ["Jörg Müller", "a/b?c=d#e", "李 雷", "'quoted\" \\ name'", "ü" * 248])
def test_a_key_is_made_of_data(timed, hand, acted, who):
    @timed.effect(key="charge:{who}")
    def charge(key: Key, who: str) -> str:
        acted.append(key)
        raise ConnectionResetError("cut")

    @timed.workflow
    def buy(who: str) -> str:
        return charge(who)

    job = buy.submit(who)
    assert (hand.work(), acted) == ("Await", [f"charge:{who}"])
    assert repr(f"charge:{who}") in job.why()
    job.resolve(happened="paid", key=f"charge:{who}", by="ann")
    assert (hand.work(), job.result(1), check_books(timed)) == ("EndJob", "paid", [])
    # A fork that is to act again has a longer one.
    fork = job.fork(at="charge", fresh_keys=True)
    assert (hand.work(), acted[1]) == ("Await", f"charge:{who}:{fork.id}")
    assert check_books(timed) == []


@pytest.mark.parametrize("who", ["", "a\nb", "a\x00b", "a\x1b[2Jb", "a\u2028b", "a\x85b", "x" * 256])
def test_a_key_that_no_line_can_show_is_refused(timed, hand, acted, who):
    @timed.effect(key="{who}")
    def charge(key: Key, who: str) -> str:
        acted.append(key)
        return key

    @timed.workflow
    def buy(who: str) -> str:
        return charge(who.replace("NUL", "\x00"))

    job = buy.submit(who.replace("\x00", "NUL"))
    assert hand.work() == "EndJob"
    with pytest.raises(JobFailed, match="key of charge"):
        job.result(1)
    assert (job.row().error_code, acted, keys(timed)) == ("BAD_NAME", [], [])
