"""What is read of a job: by which thread, and what stands there when the row changes meanwhile."""

from __future__ import annotations

import contextlib
import threading

import pytest

from tallystick import Fatal, aio
from tallystick.errors import BadInput, ChildrenFailed


def test_a_job_that_ended_since_its_row_was_read_has_ended(timed, hand, monkeypatch):
    @timed.workflow
    def flow() -> str:
        return "done"

    job = flow.submit()
    store = timed.runtime().store
    before = store.job(job.id)
    hand.work()
    monkeypatch.setattr(store, "job", lambda _job_id: before)
    assert job.why().startswith("it succeeded at ")


def test_how_children_ended_is_read_beside_the_loop(app, monkeypatch):
    """Other tasks of the worker go on while a large group is read."""

    @app.workflow
    async def child(n: int) -> int:
        if n < 0:
            raise Fatal("no")
        return n

    @app.workflow
    async def parent() -> list[int]:
        with contextlib.suppress(ChildrenFailed):
            await aio.gather(child.child(-1), child.child(2), fail_fast=True)
        return list(await aio.gather(child.child(1), child.child(2)))

    readers = []
    children = type(app.runtime().store).children

    def noted(*args, **kwargs):
        readers.append(threading.current_thread().name)
        return children(*args, **kwargs)

    monkeypatch.setattr(type(app.runtime().store), "children", noted)
    with app.worker():
        assert parent.submit().result(30) == [1, 2]
    assert readers
    assert "tally-loop" not in readers


@pytest.mark.parametrize("text", ["a\udcffb"])
def test_a_store_that_is_asked_for_what_it_cannot_hold_says_so(app, text):
    with pytest.raises(BadInput, match="cannot be looked for"):
        app.runtime().store.job(text)
