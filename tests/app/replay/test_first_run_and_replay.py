"""What a workflow sees is the same on the first run and after any crash."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from tallystick import Fatal, JobFailed, Retry, StepFailed, Tally, now, random, uuid
from tallystick.testing.stepping import Death, SteppedWorker


@dataclass
class Order:
    number: int
    lines: tuple[str, ...]


class CardDeclined(Exception):
    reason: str

    def __init__(self, reason: str) -> None:
        super().__init__(f"declined: {reason}")
        self.reason = reason


def result_of(hand, job):
    hand.work_all()
    return job.result(5)


def test_a_recorded_step_is_not_run_again_after_a_crash(timed, hand):
    runs = []

    @timed.step
    def quote(order: int) -> int:
        runs.append(order)
        return order * 2

    dying = [True]

    @timed.workflow
    def checkout(order: int) -> int:
        price = quote(order)
        if dying.pop() if dying else False:
            raise Death
        return price + 1

    job = checkout.submit(21)
    assert hand.work() == "died"
    assert hand.work() == "idle"
    assert hand.expire() == 1
    assert hand.work() == "EndJob"
    assert job.result(5) == 43
    assert runs == [21]


def test_values_have_their_annotated_type_on_the_first_run_and_on_replay(timed, hand):
    seen = []

    @timed.step
    def order() -> Order:
        return Order(7, ("a", "b"))

    @timed.step
    def moment() -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    @timed.step
    def anything():
        return {"pair": (1, 2)}

    alive = []

    @timed.workflow
    def flow() -> Order:
        seen.append((order(), moment(), anything()))
        if not alive:
            alive.append(1)
            raise Death
        return order()

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    assert result_of(hand, job) == Order(7, ("a", "b"))
    assert seen[0] == seen[1] == (Order(7, ("a", "b")), datetime(2026, 1, 2, tzinfo=UTC), {"pair": [1, 2]})


def test_time_and_chance_are_drawn_once(timed, hand, clock):
    seen = []

    @timed.step
    def mark(text: str) -> str:
        return text

    deaths = [1, 2]

    @timed.workflow
    def flow() -> None:
        drawn = (now(), uuid(), random(), now())
        mark("first")
        later = (now(), uuid())
        mark("second")
        seen.append((drawn, later))
        if deaths:
            deaths.pop()
            raise Death

    job = flow.submit()
    for _ in range(2):
        assert hand.work() == "died"
        clock.advance(12_345)
        hand.expire()
    assert result_of(hand, job) is None
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0][1] != seen[0][1][1]


def test_time_drawn_before_a_crash_without_a_record_may_be_drawn_again(timed, hand, clock):
    """Nothing can depend on it: no bundle carried it."""
    seen = []
    deaths = [1]

    @timed.workflow
    def flow() -> None:
        seen.append(now())
        if deaths:
            deaths.pop()
            raise Death

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    result_of(hand, job)
    assert len(seen) == 2


def test_a_failed_step_raises_the_same_error_both_times(timed, hand):
    seen = []

    @timed.step
    def charge() -> None:
        raise ValueError("no funds")

    deaths = [1]

    @timed.workflow
    def flow() -> str:
        try:
            charge()
        except StepFailed as error:
            seen.append((error.step, error.type, error.error_code, error.tries, str(error)))
        if deaths:
            deaths.pop()
            raise Death
        return "handled"

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    assert result_of(hand, job) == "handled"
    assert (
        seen[0]
        == seen[1]
        == ("charge", "ValueError", "ValueError", 1, "charge failed after 1 try: ValueError: no funds")
    )


def test_a_declared_error_is_rebuilt_from_its_fields_both_times(timed, hand):
    seen = []

    @timed.step(raises=[CardDeclined])
    def charge() -> None:
        raise CardDeclined("stolen")

    deaths = [1]

    @timed.workflow
    def flow() -> None:
        try:
            charge()
        except CardDeclined as error:
            seen.append((type(error), error.reason))
        if deaths:
            deaths.pop()
            raise Death

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    result_of(hand, job)
    assert seen == [(CardDeclined, "stolen")] * 2


class Unbuildable(Exception):
    reason: object

    def __init__(self) -> None:
        super().__init__("cannot be rebuilt")
        self.reason = object()


class Closed(Exception):
    reason: str

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.reason = text


@pytest.mark.parametrize("make", [Unbuildable, lambda: Closed("x")])
def test_a_declared_error_that_cannot_be_rebuilt_is_a_step_failed_both_times(timed, hand, make):
    seen = []

    @timed.step(raises=[Unbuildable, Closed])
    def charge() -> None:
        raise make()

    deaths = [1]

    @timed.workflow
    def flow() -> None:
        try:
            charge()
        except StepFailed as error:
            seen.append(error.type)
        if deaths:
            deaths.pop()
            raise Death

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    result_of(hand, job)
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_tries_are_counted_before_the_backoff_and_survive_a_crash(timed, hand):
    tries = []

    @timed.step(retry=Retry(3, first="1ms"))
    def flaky() -> str:
        tries.append(1)
        if len(tries) == 2:
            raise Death
        raise RuntimeError("again")

    @timed.workflow
    def flow() -> int:
        try:
            flaky()
        except StepFailed as error:
            return error.tries
        return 0

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    assert result_of(hand, job) == 3
    assert len(tries) == 4  # try 2 died without a record, so it was made again


def test_fatal_is_not_tried_again(timed, hand):
    tries = []

    @timed.step(retry=Retry(5, first="1ms"))
    def refuse() -> None:
        tries.append(1)
        raise Fatal("never")

    @timed.workflow
    def flow() -> None:
        refuse()

    job = flow.submit()
    with pytest.raises(JobFailed, match="refuse failed after 1 try: Fatal: never") as failed:
        result_of(hand, job)
    assert failed.value.fields["error_code"] == "STEP_FAILED"
    assert "refuse" in str(failed.value.fields["trace"])
    assert len(tries) == 1


def test_a_long_backoff_gives_the_lease_back_and_counts_on(timed, hand, clock):
    tries = []

    @timed.step(retry=Retry(3, first="1m"))
    def flaky() -> str:
        tries.append(clock.wall_ms())
        if len(tries) < 3:
            raise RuntimeError("later")
        return "ok"

    @timed.workflow
    def flow() -> str:
        return flaky()

    job = flow.submit()
    assert hand.work() == "EndAttempt"
    assert hand.work() == "idle"
    row = job.row()
    assert 47_000 <= row.ready_at - clock.wall_ms() <= 60_000
    clock.advance(60_000)
    assert hand.work() == "EndAttempt"
    clock.advance(120_000)
    assert hand.work() == "EndJob"
    assert job.result(5) == "ok"
    assert [event.name for event in job.history()].count("try") == 2


def test_a_changed_workflow_is_held_with_a_readable_diff(timed, hand):
    @timed.step
    def reserve() -> None: ...

    @timed.step
    def charge() -> None: ...

    @timed.step
    def ship() -> None: ...

    ran = []
    changed = []

    @timed.workflow
    def flow() -> None:
        reserve()
        if not changed:
            charge()
            raise Death
        ship()
        ran.append("shipped")

    job = flow.submit()
    assert hand.work() == "died"
    changed.append(1)
    hand.expire()
    assert hand.work() == "EndAttempt"
    row = job.row()
    assert (row.state, row.hold, ran) == ("IN_PROGRESS", "MISMATCH", [])
    assert hand.work() == "idle"
    assert "- charge#1" in row.hold_reason
    assert "+ ship#1" in row.hold_reason
    assert hand.work() == "idle"


def test_a_workflow_that_returns_before_its_recorded_steps_is_held(timed, hand):
    @timed.step
    def charge() -> None: ...

    deaths = [1]

    @timed.workflow
    def flow() -> str:
        if not deaths:
            return "early"
        charge()
        deaths.pop()
        raise Death

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndAttempt"
    assert job.row().hold == "MISMATCH"


def test_a_step_that_became_a_transaction_is_a_mismatch(timed, hand, clock, url):
    @timed.step
    def save() -> None: ...

    @timed.workflow
    def flow() -> None:
        save()
        raise Death

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    newer = Tally(url, clock=clock)
    save_in_tx = newer.tx(name="save")(lambda _db: None)

    @newer.workflow(name="flow")
    def newer_flow() -> None:
        save_in_tx()

    assert SteppedWorker(newer, clock).work() == "EndAttempt"
    assert job.row().hold == "MISMATCH"
    newer.close()


def test_a_mismatch_that_the_workflow_swallows_is_still_a_mismatch(timed, hand):
    @timed.step
    def first() -> None: ...

    @timed.step
    def second() -> None: ...

    deaths = [1]

    @timed.workflow
    def flow() -> str:
        if deaths:
            first()
            deaths.pop()
            raise Death
        try:
            second()
        except BaseException:  # noqa: BLE001 (this is the point: it does not help)
            return "swallowed"
        return "fine"

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndAttempt"
    assert job.row().hold == "MISMATCH"


def test_an_async_workflow_replays_like_a_sync_one(timed, hand):
    runs = []

    @timed.step
    async def fetch(page: int) -> int:
        runs.append(page)
        return page

    @timed.step
    def parse(page: int) -> int:
        runs.append(-page)
        return page * 10

    deaths = [1]

    @timed.workflow
    async def crawl(pages: int) -> int:
        total = 0
        for page in range(1, pages + 1):
            total += await parse.aio(await fetch(page))
        if deaths:
            deaths.pop()
            raise Death
        return total

    job = crawl.submit(3)
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) == 60
    assert runs == [1, -1, 2, -2, 3, -3]
