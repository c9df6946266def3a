"""Who waits learns why not: a transaction that cannot be had, a job that is no longer there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.store.api import RunTx

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
                if away.exists() and any(type(bundle[0]) is RunTx for bundle in batch):
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
