"""A call that comes to a key of another job ends the segment when nothing else of it can go on."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import Key, NotDone, Retry, thread_map
from tallystick.core.effects.requests import CallEffect
from tallystick.testing.stepping import check_books, check_store, die, reclaim
from tests.patience import PATIENCE_SECONDS

MINUTES_MS = 120_000


def effects(app) -> dict[str, tuple]:
    with app.connect() as db:
        found = db.execute("select key, phase, outcome from effect_keys")
        return {key: (phase, outcome) for key, phase, outcome in found}


def due(app) -> list[int]:
    with app.connect() as db:
        return [at for (at,) in db.execute("select due_at from effect_keys order by key")]


def late(app) -> list[str]:
    with app.connect() as db:
        return [report for (report,) in db.execute("select report from stale_reports")]


@pytest.fixture
def came(timed, monkeypatch):
    """Set as soon as a job has come to the key `taken`, and has its answer."""
    seen, store = threading.Event(), timed.runtime().store
    apply = store.apply

    def noted(bundles):
        given = list(bundles)
        outcomes = list(apply(given))
        asked = [each for bundle in given for each in bundle if isinstance(each, CallEffect)]
        if any(each.intent.key[2] == "taken" for each in asked):
            seen.set()
        return outcomes

    monkeypatch.setattr(store, "apply", noted)
    return seen


@pytest.fixture
def act(timed):
    """An effect in whose call the worker dies."""

    @timed.effect(key="{what}", timeout="2s")
    def act(key: Key, what: str) -> str:
        die()

    return act


@pytest.fixture
def owner(timed, hand, came, act):
    """The job that has the key `taken`: its worker has died in the call."""

    @timed.workflow
    def owning() -> str:
        return act("taken")

    job = owning.submit()
    assert hand.work() == "died"
    came.clear()
    return job


def answered(app, hand, owner) -> None:
    """Let a person say what came of the call of the owner, and all go on."""
    hand.expire()
    reclaim(app)
    owner.resolve(happened="done by the owner", by="ann")
    hand.work_all()


@pytest.mark.parametrize("colour", ["sync", "async", "threads"])
def test_a_call_under_way_says_what_came_of_it_before_its_job_waits_for_a_key(
    timed, hand, came, owner, act, colour
):
    begun = threading.Event()

    def slow(key: Key, what: str) -> str:
        begun.set()
        assert came.wait(PATIENCE_SECONDS)
        return "sent"

    async def slow_async(key: Key, what: str) -> str:
        return await asyncio.to_thread(slow, key, what)

    declared = timed.effect(key="{what}", name="send", timeout="30s")
    send, send_async = (None, declared(slow_async)) if colour == "async" else (declared(slow), None)

    @timed.workflow
    async def tasks() -> list[str]:
        sent = send_async("own") if colour == "async" else send.aio("own")
        return list(await asyncio.gather(act.aio("taken"), sent))

    @timed.workflow
    def threads() -> list[str]:
        def one(what: str) -> str:
            if what == "own":
                return sent(what)
            assert begun.wait(PATIENCE_SECONDS)
            return called(what)

        return thread_map(one, ["taken", "own"])

    called, sent = act.named("called"), send.named("sent") if colour == "threads" else None
    job = threads.submit() if colour == "threads" else tasks.submit()
    assert hand.work() == "Await"
    assert effects(timed) == {"taken": ("CALLING", None), "own": ("ENDED", "HAPPENED")}
    assert (late(timed), job.row().hold, job.row().ready_at) == ([], None, None)
    assert check_books(timed) == []
    answered(timed, hand, owner)
    assert (job.result(1), check_books(timed)) == (["done by the owner", "sent"], [])


def test_a_step_under_way_is_not_run_twice(timed, hand, came, owner, act):
    runs = []

    @timed.step
    async def pack(box: int) -> str:
        assert await asyncio.to_thread(came.wait, PATIENCE_SECONDS)
        runs.append(box)
        return "packed"

    @timed.workflow
    async def flow() -> list[str]:
        return list(await asyncio.gather(act.aio("taken"), pack(1)))

    job = flow.submit()
    assert (hand.work(), runs, late(timed)) == ("Await", [1], [])
    answered(timed, hand, owner)
    assert (job.result(1), runs, check_books(timed)) == (["done by the owner", "packed"], [1], [])


@pytest.mark.parametrize("ending", ["raises", "backs off"])
def test_a_segment_that_ends_for_another_reason_lets_a_call_finish(timed, hand, clock, ending):
    left = threading.Event()

    @timed.effect(key="{what}", timeout="30s")
    async def send(key: Key, what: str) -> str:
        assert await asyncio.to_thread(left.wait, PATIENCE_SECONDS)
        return "sent"

    @timed.step(retry=Retry(2, first="1h"))
    async def pack(box: int) -> str:
        if left.is_set():
            return "packed"
        left.set()
        raise OSError("no box")

    @timed.workflow
    async def flow() -> list[str]:
        async def fails() -> str:
            left.set()
            raise ValueError("wrong")

        return list(await asyncio.gather(send("own"), fails() if ending == "raises" else pack(1)))

    job = flow.submit()
    assert hand.work() == ("EndJob" if ending == "raises" else "EndAttempt")
    assert (effects(timed), late(timed)) == ({"own": ("ENDED", "HAPPENED")}, [])
    assert (job.row().hold, check_books(timed)) == (None, [])
    if ending == "backs off":
        clock.advance(3_600_000)
        assert (hand.work(), job.result(1)) == ("EndJob", ["sent", "packed"])


@pytest.fixture
def crossing(timed):
    """A workflow that calls under a key of its own, and beside it, in its second segment, under another."""
    acted = []

    @timed.effect(key="{what}", retry=Retry(3, first="1m", factor=1.0))
    async def act(key: Key, what: str, tries: int) -> str:
        acted.append(what)
        if acted.count(what) < tries:
            raise NotDone("busy")
        return f"{what} done"

    @timed.workflow
    async def flow(mine: str, other: str, tries: int) -> list[str]:
        async def second() -> str:
            if len(acted) < 2:
                await asyncio.get_running_loop().create_future()  # each has a key first
            return await act(other, tries)

        return list(await asyncio.gather(act(mine, tries), second()))

    return flow


def test_jobs_that_rest_and_wait_for_the_keys_of_each_other_go_on(timed, hand, clock, crossing):
    jobs = [crossing.submit("a", "b", 3), crossing.submit("b", "a", 3)]
    assert (hand.work(), hand.work(), hand.work()) == ("EndAttempt", "EndAttempt", "idle")
    clock.advance(MINUTES_MS)
    # Both have called once more, have done nothing, and have come to the key of the other.
    assert (hand.work(), hand.work(), hand.work()) == ("Await", "Await", "idle")
    assert effects(timed) == {"a": ("RESTING", None), "b": ("RESTING", None)}
    assert [job.row().ready_at for job in jobs] == due(timed)
    assert (check_books(timed), check_store(timed)) == ([], [])
    why = jobs[0].why()
    assert why.until.timestamp() * 1000 == jobs[0].row().ready_at
    assert "act under the key 'a': nothing has happened so far; it may be called again from" in why
    assert f"job {jobs[1].id} has the key 'b' of act" in why
    clock.advance(MINUTES_MS)
    hand.work_all()
    assert [job.result(1) for job in jobs] == [["a done", "b done"], ["b done", "a done"]]
    assert (late(timed), check_books(timed)) == ([], [])
