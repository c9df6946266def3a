"""A job that turns, or whose child has ended, is claimed in the flush that made it due."""

from __future__ import annotations

import pytest

from tallystick import again
from tallystick.worker.roles import look

TURNS = 12
PATIENCE_SECONDS = 20


@pytest.fixture
def looks_never(monkeypatch):
    """A worker looks for work when it begins, and not again while a test lasts."""
    monkeypatch.setattr(look, "LOOK_SECONDS_MIN", 3_600)
    monkeypatch.setattr(look, "LOOK_SECONDS_MAX", 3_600)


@pytest.mark.usefixtures("looks_never")
@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.parametrize("slots", [1, 4])
def test_a_turn_is_claimed_in_its_own_flush(app, colour, slots):
    if colour == "sync":

        @app.workflow
        def loop(left: int) -> int:
            return again(left - 1) if left else 7

    else:

        @app.workflow
        async def loop(left: int) -> int:
            return again(left - 1) if left else 7

    with app.worker(concurrency=slots):
        committer = app.runtime().committer
        before = committer.flushes
        assert loop.submit(TURNS).result(PATIENCE_SECONDS) == 7
        assert committer.flushes - before <= TURNS + 6, "a turn is a flush, not two"


@pytest.mark.usefixtures("looks_never")
@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("first", ["a step", "nothing"])
def test_children_in_sequence_need_no_look(app, colour, slots, first):
    @app.step
    def work(number: int) -> int:
        return number

    if colour == "sync":

        @app.workflow
        def child(number: int) -> int:
            return number

        @app.workflow
        def parent(count: int) -> list[int]:
            return [child(work(number) if first == "a step" else number) for number in range(count)]

    else:

        @app.workflow
        async def child(number: int) -> int:
            return number

        @app.workflow
        async def parent(count: int) -> list[int]:
            return [
                await child(await work.aio(number) if first == "a step" else number)
                for number in range(count)
            ]

    with app.worker(concurrency=slots):
        assert parent.submit(TURNS).result(PATIENCE_SECONDS) == list(range(TURNS))


@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.slow
def test_a_replay_reads_children_of_many_joins_at_once(timed, hand, colour, monkeypatch):
    """A parent of children in sequence replays all of its joins each time: not a read for each of them."""
    if colour == "sync":

        @timed.workflow
        def child(number: int) -> int:
            return number

        @timed.workflow
        def parent(count: int) -> list[int]:
            return [child(number) for number in range(count)]

    else:

        @timed.workflow
        async def child(number: int) -> int:
            return number

        @timed.workflow
        async def parent(count: int) -> list[int]:
            return [await child(number) for number in range(count)]

    count = 100
    job = parent.submit(count)
    store = timed.runtime().store
    reads: list[str] = []
    for name in ("children", "finished"):
        read = getattr(store, name)

        def noted(*arguments, name=name, read=read, **options):
            reads.append(name)
            return read(*arguments, **options)

        monkeypatch.setattr(store, name, noted)
    hand.work_all()
    assert job.result(5) == list(range(count))
    # For each child one read when it has ended, and in each replay one for every 64 before it.
    assert len(reads) <= 4 * count
