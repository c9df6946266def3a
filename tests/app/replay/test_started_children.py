"""A child can be started now and waited for later; its errors come back as what they were."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from tallystick import (
    ChildrenFailed,
    Fatal,
    JobFailed,
    Tally,
    aio,
    gather,
    start,
    wait,
)
from tallystick.errors import BadInput, IdempotencyConflict, Misuse
from tallystick.testing.stepping import Death, SteppedWorker, cancel_overdue, check_books


@dataclass
class NoStock(Exception):
    item: str
    left: int


@pytest.fixture
def shop(timed):
    return Shop(timed)


class Shop:
    """Workflows that children are made of, and how often each was called."""

    def __init__(self, app):
        self.calls = calls = []

        @app.workflow(raises=[NoStock])
        def pack(item: str, left: int = 1) -> str:
            calls.append(item)
            if left < 1:
                raise NoStock(item, left)
            if left > 10:
                raise Fatal("no such number")
            return f"packed {item}"

        @app.step
        def note(text: str) -> str:
            calls.append(text)
            return text

        self.pack, self.note = pack, note


# --- start ---


def test_a_started_child_runs_while_its_parent_goes_on(timed, hand, shop):
    @timed.workflow
    def order() -> list[str]:
        tea = start(shop.pack.child("tea"))
        milk = start(shop.pack.child("milk"))
        said = shop.note("while they run")
        return [said, milk.result(), tea.result(), tea.result(), tea.id]

    job = order.submit()
    assert hand.work() == "Await"
    assert shop.calls == ["while they run"]
    hand.work_all()
    said, milk, tea, twice, child_id = job.result(5)
    assert (said, milk, tea, twice) == ("while they run", "packed milk", "packed tea", "packed tea")
    assert job.children()[0].id == child_id
    assert sorted(shop.calls) == ["milk", "tea", "while they run"]
    assert check_books(timed) == []


def test_a_started_child_is_awaited_later_in_an_async_workflow(timed, hand, shop):
    @timed.workflow
    async def order() -> list[str]:
        handles = [await aio.start(shop.pack.child(item)) for item in ("tea", "milk", "jam")]
        said = await aio.wait("said", str)
        return [said, *(await asyncio.gather(*handles)), await handles[0]]

    job = order.submit()
    hand.work_all()
    assert sorted(shop.calls) == ["jam", "milk", "tea"]
    job.send("said", "hello")
    hand.work_all()
    assert job.result(5) == ["hello", "packed tea", "packed milk", "packed jam", "packed tea"]
    assert check_books(timed) == []


@pytest.mark.parametrize("dies_at", ["started", "noted", "joined"])
def test_a_started_child_is_made_once_through_crashes(timed, hand, shop, dies_at):
    deaths = {dies_at}

    def reach(place):
        if place in deaths:
            deaths.discard(place)
            raise Death

    @timed.workflow
    def order() -> list[str]:
        tea = start(shop.pack.child("tea"))
        reach("started")
        said = shop.note("then")
        reach("noted")
        packed = tea.result()
        shop.note("after")
        reach("joined")
        return [said, packed, wait("done", str)]

    job = order.submit()
    job.send("done", "done")
    for _ in range(6):
        if hand.work() == "died":
            hand.expire()
    assert job.result(5) == ["then", "packed tea", "done"]
    assert sorted(shop.calls) == ["after", "tea", "then"]
    assert len(job.children()) == 1
    assert check_books(timed) == []


def test_a_child_that_nobody_waits_for_ends_with_its_parent(timed, hand, clock):
    @timed.workflow
    def long() -> None:
        wait("never", str)

    @timed.workflow
    def order() -> str:
        return start(long.child()).id

    job = order.submit()
    hand.work_all()
    clock.advance(31_000)
    cancel_overdue(timed)
    assert timed.job(job.result(5)).state() == "CANCELLED"
    assert check_books(timed) == []


def test_what_a_started_child_may_not_be_used_for_is_said(timed, hand, shop):
    seen = []

    @timed.workflow
    def order() -> None:
        handle = start(shop.pack.child("tea"))
        for call in (lambda: gather(handle), lambda: start("tea")):
            with pytest.raises(Misuse) as raised:
                call()
            seen.append(str(raised.value))
        handle.result()

    job = order.submit()
    hand.work_all()
    job.result(5)
    assert "gather takes children" in seen[0]
    assert "result()" in seen[0]
    assert "start takes children" in seen[1]


def test_code_that_no_longer_starts_a_child_is_held(url, clock):
    def program(tally, *, starts):
        shop = Shop(tally)

        @tally.workflow
        def order() -> str:
            handle = start(shop.pack.child("tea")) if starts else None
            said = wait("said", str)
            return f"{said} {handle.result() if handle else ''}"

        return order

    with_start, without = Tally(url, clock=clock), Tally(url, clock=clock)
    try:
        job_id = program(with_start, starts=True).submit().id
        program(without, starts=False)
        SteppedWorker(with_start, clock).work_all()
        with_start.job(job_id).send("said", "so")
        SteppedWorker(without, clock).work_all()
        assert without.job(job_id).row().hold == "MISMATCH"
        assert "- gather#1 (open)" in without.job(job_id).row().hold_reason
        with_start.job(job_id).resume()
        SteppedWorker(with_start, clock).work_all()
        assert with_start.job(job_id).result(5) == "so packed tea"
    finally:
        with_start.close()
        without.close()


# --- raises ---


def test_a_job_raises_the_error_that_its_workflow_declares(timed, hand, shop):
    job = shop.pack.submit("tea", 0)
    hand.work_all()
    for _ in range(2):
        with pytest.raises(NoStock) as raised:
            job.result(5)
        assert (raised.value.item, raised.value.left) == ("tea", 0)
    # A handle that does not know the workflow says what it can.
    with pytest.raises(JobFailed, match="tea"):
        timed.job(job.id).result(5)
    other = shop.pack.submit("tea", 11)
    hand.work_all()
    with pytest.raises(JobFailed, match="no such number"):
        other.result(5)


def test_a_parent_catches_what_a_child_declares(timed, hand, shop):
    @timed.workflow
    def order(item: str) -> list[str]:
        seen = []
        for wait_for in (
            lambda: shop.pack(item, 0),
            lambda: shop.pack.child(item, -1).result(),
            lambda: start(shop.pack.child(item, -2)).result(),
        ):
            try:
                wait_for()
            except NoStock as error:
                seen.append(f"{error.item} {error.left}")
        try:
            shop.pack(item, 11)
        except ChildrenFailed as failed:
            seen.append(type(failed.errors[0]).__name__)
        return [*seen, wait("go", str)]

    job = order.submit("tea")
    hand.work_all()
    job.send("go", "on")
    hand.work_all()
    assert job.result(5) == ["tea 0", "tea -1", "tea -2", "JobFailed", "on"]


def test_an_async_parent_catches_what_a_child_declares(timed, hand):
    @timed.workflow(raises=[NoStock])
    async def pack(item: str) -> str:
        raise NoStock(item, 0)

    @timed.workflow
    async def order() -> list[str]:
        handle = await aio.start(pack.child("milk"))
        seen = []
        for awaitable in (pack("tea"), handle, handle):
            try:
                await awaitable
            except NoStock as error:
                seen.append(error.item)
        return [*seen, await aio.wait("go", str)]

    job = order.submit()
    hand.work_all()
    job.send("go", "on")
    hand.work_all()
    assert job.result(5) == ["tea", "milk", "milk", "on"]


# --- gather: errors in their places, results that are there ---


def gathering(app, shop, colour, **options):
    lefts = (1, 0, 1, 11)

    def told(outcomes):
        return [f"{each!r}"[:60] if isinstance(each, Exception) else each for each in outcomes]

    def failed_by(failed):
        return [f"{index} {value}" for index, value in failed.results.items()] + told(failed.errors)

    @app.workflow(name="sync_order")
    def order() -> list[str]:
        try:
            return told(gather(*(shop.pack.child("tea", left) for left in lefts), **options))
        except ChildrenFailed as failed:
            return failed_by(failed)

    @app.workflow(name="async_order")
    async def order_async() -> list[str]:
        try:
            return told(await aio.gather(*(shop.pack.child("tea", left) for left in lefts), **options))
        except ChildrenFailed as failed:
            return failed_by(failed)

    return order if colour == "sync" else order_async


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_errors_take_the_places_of_results_when_asked(timed, hand, shop, colour):
    job = gathering(timed, shop, colour, return_exceptions=True).submit()
    hand.work_all()
    first, stock, third, fatal = job.result(5)
    assert (first, stock, third) == ("packed tea", "NoStock(item='tea', left=0)", "packed tea")
    assert fatal.startswith("JobFailed(")


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_the_error_of_a_group_carries_the_results_that_are_there(timed, hand, shop, colour):
    job = gathering(timed, shop, colour).submit()
    hand.work_all()
    assert job.result(5)[:3] == ["0 packed tea", "2 packed tea", "NoStock(item='tea', left=0)"]


def test_enough_children_and_their_errors(timed, hand, shop):
    job = gathering(timed, shop, "sync", enough=4, return_exceptions=True).submit()
    hand.work_all()
    assert len(job.result(5)) == 4


def test_fail_fast_and_return_exceptions_exclude_each_other(timed, hand, shop):
    job = gathering(timed, shop, "sync", fail_fast=True, return_exceptions=True).submit()
    hand.work_all()
    with pytest.raises(JobFailed, match="choose one of them"):
        job.result(5)
    assert BadInput.code == job.row().error_code


# --- keys ---


def test_a_key_of_a_child_is_refused_aloud(timed, hand):
    @timed.workflow
    def pack(item: str) -> str:
        return f"packed {item}"

    @timed.workflow(idempotent=True)
    def ship(item: str) -> str:
        return f"shipped {item}"

    for keyed in (pack.opts(idempotency_key="tea"), pack.opts(idempotent=True), ship):
        with pytest.raises(Misuse, match="takes no key"):
            keyed.child("tea")

    @timed.workflow
    def order() -> list[str]:
        seen = []
        try:
            ship("tea")
        except Misuse as error:
            seen.append("refused" if "idempotent=False" in str(error) else "")
        return [
            *seen,
            *gather(ship.opts(idempotent=False).child("tea"), ship.opts(idempotent=False).child("tea")),
        ]

    job = order.submit()
    hand.work_all()
    assert job.result(5) == ["refused", "shipped tea", "shipped tea"]


def test_a_keyed_job_that_exists_is_found_by_a_detached_submission(timed, hand):
    """The way that the refusal names: one job for two parents, whoever comes first."""

    @timed.workflow
    def ship(item: str) -> str:
        return f"shipped {item}"

    @timed.workflow
    def order(item: str) -> str:
        return ship.opts(detached=True, idempotency_key="parcel-1").submit(item).id

    first, second, other = order.submit("tea"), order.submit("tea"), order.submit("milk")
    hand.work_all()
    assert first.result(5) == second.result(5)
    with pytest.raises(JobFailed) as raised:
        other.result(5)
    assert raised.value.error_code == IdempotencyConflict.code
