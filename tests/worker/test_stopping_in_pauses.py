"""A worker that stops or is closed while a job pauses, runs, or is on its way to it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallystick import Retry, Tally, Tx
from tallystick.errors import StoreError
from tests.patience import wait_until

SECONDS = 30


@pytest.fixture
def pausing(app, monkeypatch):
    """A workflow whose step fails and is tried again after a pause that outlasts the test; and its tries."""
    tries = []

    @app.step(retry=Retry(5, first="4s"))
    def fails() -> None:
        tries.append(1)
        raise OSError("not now")

    @app.workflow
    def flow() -> None:
        fails()

    runtime = app.runtime()
    pause = runtime.pause
    monkeypatch.setattr(runtime, "pause", lambda ms: pause(100 * ms))
    return flow, tries


def names_of(job) -> list[str]:
    return [event.name for event in job.history()]


@pytest.mark.parametrize("close", [True, False], ids=["closed", "stopped"])
def test_a_pause_between_tries_is_not_cut_into_tries(app, pausing, close):
    flow, tries = pausing
    with app.worker():
        job = flow.submit()
        wait_until(lambda: names_of(job)[-1] == "try", "it pauses")
        if close:
            app.close()
    assert len(tries) == 1
    assert names_of(job) == ["submit", "claim", "try", "release"]
    assert job.state() == "IN_PROGRESS"
    with app.connect() as db:
        assert db.execute("SELECT charged FROM attempts") in ([(0,)], [(False,)])


def test_a_worker_that_stops_does_not_claim_again_what_it_gives_back(app, pausing, monkeypatch):
    """A claim on its way would bring the job back, and spend one of its tries."""
    flow, tries = pausing
    runtime = app.runtime()
    with app.worker(), ThreadPoolExecutor(1) as pool:
        worker, put, held = runtime.worker, runtime.committer.put, []
        job = flow.submit()
        wait_until(lambda: names_of(job)[-1] == "try", "it pauses")
        with monkeypatch.context() as patch:
            patch.setattr(runtime.committer, "put", held.append)
            worker.poke()
            wait_until(lambda: held, "a claim that is on its way, and stays there")
        stopping = pool.submit(runtime.stop_worker)
        # It waits for the claim, or has let go what pauses already.
        wait_until(lambda: worker._idle._waiters, "a worker that stops")
        wait_until(lambda: not worker.halting.is_set() or names_of(job)[-1] == "release")
        for requests in held:
            put(requests)
        assert stopping.result(SECONDS)
    assert len(tries) == 1
    assert names_of(job) == ["submit", "claim", "try", "release"]


def test_what_is_wrong_with_the_store_is_said_and_not_charged_to_the_job(app, monkeypatch, caplog):
    @app.tx
    def note(db: Tx) -> int:
        return 1

    @app.workflow(attempts=1)
    def flow() -> int:
        return note()

    with app.worker():
        runtime = app.runtime()
        monkeypatch.setattr(runtime, "run_tx", _failing_once(runtime.run_tx))
        job = flow.submit()
        assert job.result(SECONDS) == 1
    assert [event.name for event in job.history()] == ["submit", "claim", "release", "claim", "tx", "return"]
    assert f"job {job.id}: given back, too many connections" in caplog.text


def _failing_once(run_tx):
    errors = [StoreError("too many connections")]

    def run(*arguments):
        if errors:
            raise errors.pop()
        return run_tx(*arguments)

    return run


def test_loops_that_are_closed_are_not_kept(app):
    @app.workflow
    def flow() -> int:
        return 1

    for _ in range(5):
        asyncio.run(flow.submit_aio())
    assert len(app.runtime().committer._lanes) == 1


def test_a_closed_tally_is_not_opened_beside_itself_by_what_still_runs(tmp_path):
    app = Tally(f"sqlite:///{tmp_path / 'tally.db'}")
    begun, go = threading.Event(), threading.Event()
    seen = []

    @app.step
    def looks() -> None:
        begun.set()
        go.wait(SECONDS)
        seen.append(len(app.jobs()))

    @app.workflow
    def flow() -> None:
        looks()

    with ThreadPoolExecutor(1) as pool:
        with app.worker():
            flow.submit()
            assert begun.wait(SECONDS)
            closing = pool.submit(app.close)
            wait_until(app.runtime().worker.halting.is_set, "it is closing")
            go.set()
        closing.result(SECONDS)
    assert seen == [1]
    app.bind(f"sqlite:///{tmp_path / 'other.db'}")
