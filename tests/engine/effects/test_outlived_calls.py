"""Sync calls that outlive their time: a thread cannot be ended, so its call is under way while it lives."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallystick import DidNotHappen, Key, NotDone, Retry
from tallystick.app.effects import calls
from tallystick.app.effects.resolving import late_reports
from tallystick.core.effects.requests import CallEffect
from tallystick.errors import JobCancelled, StoreError
from tallystick.testing.stepping import LEASE_MS, SteppedWorker, check_books, reclaim
from tests.patience import PATIENCE_SECONDS, wait_until


class Declined(Exception):
    """What the provider says."""


class Provider:
    """What is outside: it acts when it is let go, long after the time of the call."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let_go = threading.Event()
        self.called = 0
        self.acted: list[str] = []
        self.asked = 0
        self.raises: Exception | None = None

    def act(self, key: str) -> str:
        self.called += 1
        self.begun.set()
        assert self.let_go.wait(PATIENCE_SECONDS)
        if self.raises is not None:
            error, self.raises = self.raises, None
            raise error
        self.acted.append(key)
        return f"receipt {len(self.acted)}"

    def look(self, key: Key, n: int) -> DidNotHappen:
        self.asked += 1
        return DidNotHappen()


@pytest.fixture
def provider():
    provider = Provider()
    yield provider
    provider.let_go.set()


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Leases of such calls are renewed every few milliseconds."""
    monkeypatch.setattr(calls, "RENEWED_MS", 5)


@pytest.fixture(params=["sync", "async"])
def colour(request):
    return request.param


def declared(app, colour: str, provider: Provider, **options):
    """A workflow of this colour with one sync effect, whose time is over at once."""
    given = {"timeout": "20ms", "raises": [Declined], "retry": Retry(3, first="1ms"), **options}

    @app.effect(key="{n}", **given)
    def act(key: Key, n: int) -> str:
        return provider.act(key)

    @app.step
    def note(text: str) -> str:
        return text

    if colour == "sync":

        @app.workflow
        def flow() -> str:
            try:
                return note(act(1))
            except Declined as declined:
                return f"declined: {declined}"

        return flow

    @app.workflow
    async def flow_async() -> str:
        try:
            return await note.aio(await act.aio(1))
        except Declined as declined:
            return f"declined: {declined}"

    return flow_async


def rows(app, query: str) -> list[tuple]:
    with app.connect() as db:
        return [tuple(row) for row in db.execute(query)]


def effect(app) -> tuple:
    (row,) = rows(app, "select phase, outcome, calls from effect_keys")
    return row


def writes(app) -> int:
    """How often the row of the effect was written."""
    ((rev,),) = rows(app, "select rev from effect_keys")
    return rev


def await_renewals(app, provider: Provider) -> None:
    """Wait until the lease of the call was renewed a few times more."""
    assert provider.begun.wait(PATIENCE_SECONDS)
    before = writes(app)
    wait_until(lambda: writes(app) > before + 2 or provider.called > 1, "renewals of the call")


def cancel_and_let_grace_pass(app, job) -> None:
    """Ask a job to end and wait until its worker has seen that it did not in time."""
    assert job.cancel(grace="1ms") == "CANCELLING"
    # A worker that has seen it moves the end to that of the call; it may have done so already.
    grace_end = app.runtime().clock.wall_ms() + 1
    wait_until(lambda: rows(app, "select cancel_at from jobs")[0][0] > grace_end, "the end of its grace")


def test_it_acts_once_and_its_result_is_taken(app, colour, provider, caplog):
    flow = declared(app, colour, provider, probe=provider.look, settle="1ms")
    with app.worker(lease="1s"):
        job = flow.submit()
        await_renewals(app, provider)
        assert effect(app) == ("CALLING", None, 1)
        provider.let_go.set()
        assert job.result(PATIENCE_SECONDS) == "receipt 1"
    # Nobody was in doubt, so that the probe was not asked, and nothing was called a second time.
    assert (provider.called, provider.acted, provider.asked) == (1, ["1"], 0)
    assert (effect(app), check_books(app)) == (("ENDED", "HAPPENED", 1), [])
    told = [record for record in caplog.records if getattr(record, "action", "") == "effect.slow"]
    assert [record.levelname for record in told] == ["WARNING"]
    assert told[0].getMessage() == (
        f"job {job.id}: the call of act under the key 1 takes longer than 0.02 s and cannot be ended; "
        "it is waited for"
    )


def test_an_error_counts_as_if_it_had_come_in_time(app, colour, provider):
    flow = declared(app, colour, provider)
    with app.worker():
        provider.raises = Declined("no money")
        job = flow.submit()
        await_renewals(app, provider)
        provider.let_go.set()
        assert job.result(PATIENCE_SECONDS) == "declined: no money"
    assert (effect(app), check_books(app)) == (("ENDED", "REFUSED", 1), [])


def test_what_was_not_done_is_called_again_when_its_thread_has_ended(app, colour, provider):
    flow = declared(app, colour, provider)
    with app.worker():
        provider.raises = NotDone("busy")
        job = flow.submit()
        await_renewals(app, provider)
        assert provider.called == 1
        provider.let_go.set()
        assert job.result(PATIENCE_SECONDS) == "receipt 1"
    assert (effect(app), provider.acted, check_books(app)) == (("ENDED", "HAPPENED", 2), ["1"], [])


def test_an_error_that_says_nothing_leaves_it_in_doubt(app, colour, provider):
    flow = declared(app, colour, provider)
    with app.worker():
        provider.raises = OSError("connection reset")
        job = flow.submit()
        await_renewals(app, provider)
        assert job.row().hold is None
        provider.let_go.set()
        wait_until(lambda: job.row().hold == "IN_DOUBT", "the hold")
    assert ("connection reset" in job.row().hold_reason, check_books(app)) == (True, [])


def test_a_job_that_is_asked_to_end_waits_for_the_thread(app, colour, provider):
    flow = declared(app, colour, provider, probe=provider.look, settle="1ms")
    with app.worker(lease="1s"):
        job = flow.submit()
        assert provider.begun.wait(PATIENCE_SECONDS)
        cancel_and_let_grace_pass(app, job)
        await_renewals(app, provider)
        assert (job.row().state, effect(app)) == ("CANCELLING", ("CALLING", None, 1))
        provider.let_go.set()
        with pytest.raises(JobCancelled):
            job.result(PATIENCE_SECONDS)
    assert (effect(app), provider.called, provider.asked) == (("ENDED", "HAPPENED", 1), 1, 0)
    assert check_books(app) == []


def test_an_async_call_is_let_finish_when_the_grace_of_its_job_is_over(app, provider):
    @app.effect(key="{n}", timeout="30s")
    async def act(key: Key, n: int) -> str:
        return await asyncio.to_thread(provider.act, key)

    @app.workflow
    async def flow() -> str:
        return await act(1)

    with app.worker():
        job = flow.submit()
        assert provider.begun.wait(PATIENCE_SECONDS)
        cancel_and_let_grace_pass(app, job)
        provider.let_go.set()
        wait_until(lambda: effect(app)[0] != "CALLING", "what came of it")
    assert (effect(app), provider.called, check_books(app)) == (("ENDED", "HAPPENED", 1), 1, [])


def test_a_job_that_is_paused_takes_the_result_and_goes_on_when_it_is_resumed(app, colour, provider):
    flow = declared(app, colour, provider, probe=provider.look, settle="1ms")
    with app.worker(lease="1s"):
        job = flow.submit()
        await_renewals(app, provider)
        job.pause()
        flushes = app.runtime().committer.flushes
        wait_until(lambda: app.runtime().committer.flushes > flushes + 10, "renewals that are not granted")
        assert effect(app) == ("CALLING", None, 1)
        provider.let_go.set()
        wait_until(lambda: effect(app) == ("ENDED", "HAPPENED", 1), "the result")
        job.resume()
        assert job.result(PATIENCE_SECONDS) == "receipt 1"
    assert (provider.acted, provider.asked, check_books(app)) == (["1"], 0, [])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, 'EndEffect 0/act#1: HAPPENED "receipt 1"'),
        (Declined("no money"), "EndEffect 0/act#1: REFUSED {"),
        (NotDone("busy"), "RestEffect 0/act#1: NOT_DONE"),
        (OSError("cut"), "DoubtEffect 0/act#1: OSError: cut"),
    ],
)
def test_what_it_says_after_its_job_was_lost_is_kept_for_people(
    timed, hand, clock, colour, provider, error, said
):
    provider.raises = error
    job = declared(timed, colour, provider).submit()
    second = SteppedWorker(timed, clock, owner="second")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(hand.work)
        await_renewals(timed, provider)
        second.expire()
        assert first.result(PATIENCE_SECONDS) == "lost"
    assert second.work() in ("Await", "idle")
    clock.advance(LEASE_MS)
    reclaim(timed)
    assert (job.row().hold, late_reports(timed.runtime(), job.id)) == ("IN_DOUBT", [])
    provider.let_go.set()
    wait_until(lambda: late_reports(timed.runtime(), job.id), "the report")
    ((_at, report),) = late_reports(timed.runtime(), job.id)
    assert report.startswith(said)
    assert (said in job.why(), effect(timed), check_books(timed)) == (True, ("IN_DOUBT", None, 1), [])
    # It is no answer by itself: a person gives that.
    job.resolve(happened="receipt 1", by="ann")
    assert (second.work(), job.result(1), provider.called) == ("EndJob", "receipt 1", 1)
    assert check_books(timed) == []


def test_what_it_says_after_its_job_was_ended_by_force_is_kept_for_people(app, colour, provider):
    flow = declared(app, colour, provider)
    with app.worker():
        job = flow.submit()
        await_renewals(app, provider)
        assert job.cancel(force=True) == "CANCELLED"
        wait_until(lambda: app.runtime().worker.idle, "a free slot")
        assert late_reports(app.runtime(), job.id) == []
        provider.let_go.set()
        wait_until(lambda: late_reports(app.runtime(), job.id), "the report")
    ((_at, report),) = late_reports(app.runtime(), job.id)
    assert report == 'EndEffect 0/act#1: HAPPENED "receipt 1"'
    assert (effect(app)[:2], check_books(app)) == (("CALLING", None), [])


def test_a_store_that_is_away_at_a_renewal_costs_no_result(timed, hand, clock, provider, monkeypatch):
    committer = timed.runtime().committer
    write = committer.call
    failed = []

    def away(bundle):
        if isinstance(bundle[-1], CallEffect) and bundle[-1].last and len(failed) < 3:
            failed.append(bundle)
            raise StoreError("the store is away")
        if len(failed) == 3:
            provider.let_go.set()
        return write(bundle)

    monkeypatch.setattr(committer, "call", away)
    job = declared(timed, "sync", provider).submit()
    # It is given back, as after any write that the store did not take, when its thread has ended.
    assert (hand.work(), effect(timed)) == ("EndAttempt", ("ENDED", "HAPPENED", 1))
    clock.advance(1_000)
    assert (hand.work(), job.result(1), provider.acted) == ("EndJob", "receipt 1", ["1"])
    assert check_books(timed) == []
