"""What `tally doctor` says of effects in doubt that no hold shows, on each store; time is the test's."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest

from tallystick import Key, NotDone, Retry, Unknown, aio
from tallystick.app.asking.unanswered import unanswered_effects
from tallystick.cli.commands.books.doctor import as_data, examine
from tallystick.core.effects.requests import RestEffect
from tallystick.testing.stepping import ask_effects
from tests.patience import PATIENCE_SECONDS

MINUTE_MS = 60_000


@pytest.fixture
def pay(timed):
    """A workflow whose effect ends in doubt, and whose probe cannot tell."""

    def look(key: Key, order: int) -> object:
        return Unknown("the portal is closed")

    @timed.effect(key="charge:{order}", probe=look, timeout="2s", settle="1m")
    def charge(key: Key, order: int) -> str:
        raise OSError("cut")

    @timed.workflow
    def pay(order: int) -> str:
        return charge(order)

    return pay


def problems(timed) -> list[str]:
    """Look at everything but the server, which tests run unsafely, and the books, which need a real clock."""
    seen = examine(timed.runtime().store, 0)
    return [problem for problem in seen.problems if problem not in seen.health.problems]


def unknown(job, state: str) -> str:
    asked = "it is unknown whether charge happened under the key 'charge:7' (0/charge#1)"
    return f"job {job.id} ({state}): {asked}"


@pytest.mark.parametrize("tenant", ["default", "acme"])
def test_a_job_that_was_asked_to_end_and_needs_a_person_is_named(timed, hand, clock, pay, tenant):
    job = pay.opts(tenant=tenant).submit(7)
    hand.work()
    job.cancel()
    assert problems(timed) == []
    clock.advance(MINUTE_MS)
    assert ask_effects(timed) == 1
    answered = f"tally resolve {job.id} --effect 'charge#1' --happened JSON, or --did-not-happen"
    said = "and only a person can say: its probe cannot tell: the portal is closed. Find out and say so:"
    assert problems(timed) == [f"{unknown(job, 'CANCELLING')}, {said} {answered}"]
    data: Any = as_data(examine(timed.runtime().store, 0))
    (told,) = data["unanswered_effects"]
    assert (told["job_id"], told["key"], told["command"]) == (job.id, "charge:7", answered)
    job.resolve(happened="receipt")
    assert as_data(examine(timed.runtime().store, 0))["unanswered_effects"] == []


@pytest.mark.parametrize(
    ("tenant", "about"), [("default", "--key charge:7"), ("acme", "{job} --effect 'charge#1'")]
)
def test_the_effect_of_a_job_that_was_ended_by_force_is_named(timed, hand, clock, pay, tenant, about):
    job = pay.opts(tenant=tenant).submit(7)
    hand.work()
    clock.advance(MINUTE_MS)
    assert ask_effects(timed) == 1
    # As long as it is held for it, its hold is the problem.
    assert [problem.split(":")[0] for problem in problems(timed)] == [f"job {job.id} is held (IN_DOUBT)"]
    job.cancel(force=True)
    (problem,) = problems(timed)
    assert problem.startswith(unknown(job, "CANCELLED"))
    command = f"tally resolve {about.format(job=job.id)} --happened JSON, or --did-not-happen"
    assert problem.endswith(f"Find out and say so: {command}")


def test_a_probe_that_no_worker_asks_for_ten_minutes_is_named(timed, hand, clock, pay):
    job = pay.submit(7)
    hand.work()
    clock.advance(11 * MINUTE_MS - 1)
    assert problems(timed) == []
    clock.advance(1)
    (problem,) = problems(timed)
    assert problem.startswith(unknown(job, "IN_PROGRESS"))
    asks = (
        "and no worker asks the probe of charge: is there a program that declares it? Find out and say so: "
    )
    assert f"{asks}tally resolve {job.id} " in problem


def test_a_paused_job_whose_effect_needs_a_person_is_named(timed, hand, clock, pay):
    job = pay.submit(7)
    hand.work()
    job.pause("lunch")
    clock.advance(MINUTE_MS)
    assert ask_effects(timed) == 1
    assert job.row().hold == "PAUSED"
    (problem,) = problems(timed)
    assert problem.startswith(unknown(job, "IN_PROGRESS"))


def test_many_are_named_by_tenant_and_key_and_no_more_than_are_asked_for(timed, hand, clock, pay):
    for order in (3, 1, 2):
        job = pay.opts(tenant="b" if order == 1 else "a").submit(order)
        hand.work()
        job.cancel(force=True)
    clock.advance(60 * MINUTE_MS)
    store = timed.runtime().store

    def keys(tenant: str | None, limit: int) -> list[str]:
        return [each.row.key for each in unanswered_effects(store, tenant, limit)]

    assert keys(None, 9) == ["charge:2", "charge:3", "charge:1"]
    assert keys(None, 2) == ["charge:2", "charge:3"]
    assert (keys("a", 9), keys("b", 9), keys("c", 9)) == (["charge:2", "charge:3"], ["charge:1"], [])


@pytest.fixture
def rested(timed, monkeypatch):
    """Set as soon as an effect rests."""
    seen, store = threading.Event(), timed.runtime().store
    apply = store.apply

    def noted(bundles):
        given = list(bundles)
        outcomes = list(apply(given))
        if any(isinstance(each, RestEffect) for bundle in given for each in bundle):
            seen.set()
        return outcomes

    monkeypatch.setattr(store, "apply", noted)
    return seen


def test_an_effect_at_rest_whose_task_the_function_has_cancelled_is_named(timed, hand, clock, rested):
    @timed.effect(key="charge:{order}", timeout="2s", retry=Retry(3, first="1m"))
    def charge(key: Key, order: int) -> str:
        raise NotDone("busy")

    @timed.step
    async def pack() -> bool:
        return await asyncio.to_thread(rested.wait, PATIENCE_SECONDS)

    @timed.workflow
    async def flow(order: int) -> None:
        charging = asyncio.create_task(charge.aio(order))
        await pack()
        charging.cancel()
        with suppress(asyncio.CancelledError):
            await charging
        await aio.wait("go", bool)

    job = flow.submit(7)
    assert hand.work() == "Await"
    assert "nothing has happened so far; it may be called again from" in job.why()
    with timed.connect() as db:
        ((due_at,),) = db.execute("select due_at from effect_keys")
    clock.advance(due_at + 10 * MINUTE_MS - clock.wall_ms() - 1)
    assert problems(timed) == []
    clock.advance(1)
    (problem,) = problems(timed)
    assert problem.startswith(
        f"job {job.id}: charge under the key 'charge:7' (0/charge#1) may be called again"
    )
    assert "has it cancelled the task of that call? The key is taken until the job ends" in problem
    assert "when its function comes back to it" in job.why()
    # Somebody or something else keeps it: that is what is said then.
    job.pause("lunch")
    assert problems(timed) == []
    job.resume()
    assert len(problems(timed)) == 1
    job.cancel()
    assert problems(timed) == []
