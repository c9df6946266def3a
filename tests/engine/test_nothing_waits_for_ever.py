"""Who waits learns why not: a transaction that cannot be had, a job that is no longer there."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.errors import NotFound
from tests.patience import wait_until

PATIENCE = 30

sqlite_only = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


@pytest.fixture
def moved_away(tmp_path, app, monkeypatch):
    """A file that a workflow can move away; it is back as soon as a transaction has been refused."""
    store = app.runtime().store
    here, away = tmp_path / "shop.db", tmp_path / "away.db"
    apply, lock = store.apply, threading.Lock()

    def applied(batch):
        try:
            return apply(batch)
        finally:
            with lock:
                if away.exists() and any(type(bundle[0]).__name__ == "RunTx" for bundle in batch):
                    away.rename(here)

    monkeypatch.setattr(store, "apply", applied)
    return lambda: None if tried(tmp_path) else here.rename(away)


def tried(folder: Path) -> bool:
    """Tell whether this was asked before."""
    mark = folder / "tried"
    before = mark.exists()
    mark.touch()
    return before


@sqlite_only
def test_a_tx_whose_flush_cannot_begin_is_refused_and_runs_again(app: Tally, moved_away):
    @app.tx
    def put(db, n: int) -> int:
        return n

    @app.workflow
    def flow() -> int:
        moved_away()
        return put(7)

    with app.worker():
        assert flow.submit().result(PATIENCE) == 7


@sqlite_only
def test_a_tx_of_an_async_workflow_whose_flush_cannot_begin_is_refused_too(app: Tally, moved_away):
    @app.tx
    def put(db, n: int) -> int:
        return n

    @app.workflow
    async def flow() -> int:
        moved_away()
        return await put.aio(7)

    with app.worker():
        assert flow.submit().result(PATIENCE) == 7


@pytest.fixture
def removal(app: Tally, url: str, monkeypatch):
    """What ends a job in another process and removes it when somebody here waits, before anybody looks."""
    other, store = Tally(url), app.runtime().store
    removed, finished = threading.Event(), store.finished

    def looked(job_ids):
        assert removed.wait(PATIENCE)
        return finished(job_ids)

    def remove(job) -> None:
        wait_until(lambda: job.id in app.runtime().results._listeners, "somebody waits")
        other.job(job.id).cancel()
        assert other.prune(older_than="0s") == 1
        removed.set()

    monkeypatch.setattr(store, "finished", looked)
    threads = []

    def begin(job) -> None:
        threads.append(threading.Thread(target=remove, args=(job,)))
        threads[0].start()

    yield begin
    threads[0].join()
    other.close()


def declared(app: Tally):
    @app.workflow
    def flow() -> int:
        return 1

    return flow


def test_the_result_of_a_job_that_was_removed_before_is_not_found(app: Tally):
    job = declared(app).submit()
    job.cancel()
    app.prune(older_than="0s")
    app.runtime().results._recent.clear()
    with pytest.raises(NotFound, match=job.id):
        job.result(PATIENCE)
    with pytest.raises(NotFound, match=job.id):
        app.job(job.id).result(PATIENCE)
    with pytest.raises(NotFound, match=job.id):
        asyncio.run(in_time(job))
    with pytest.raises(NotFound, match=job.id):
        asyncio.run(in_time(app.job(job.id)))


def test_who_waits_for_a_job_that_is_removed_meanwhile_learns_of_it(app: Tally, removal):
    job = declared(app).submit()
    removal(job)
    with pytest.raises(NotFound, match=job.id):
        job.result(PATIENCE)


def test_a_task_that_awaits_a_job_that_is_removed_meanwhile_learns_of_it(app: Tally, removal):
    job = declared(app).submit()
    removal(job)
    with pytest.raises(NotFound, match=job.id):
        asyncio.run(in_time(job))


def test_a_job_whose_transaction_was_undone_is_not_found(app: Tally):
    flow = declared(app)
    jobs = []

    def regretted() -> None:
        with app.transaction() as db:
            jobs.append(flow.opts(within=db).submit())
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        regretted()
    with pytest.raises(NotFound):
        jobs[0].result(PATIENCE)


async def in_time(job):
    return await asyncio.wait_for(job, PATIENCE)
