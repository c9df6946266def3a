"""What a job and its steps can learn about themselves, and which jobs a job has started."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from tallystick import Retry, aio, current, gather
from tallystick.errors import Misuse


def test_a_workflow_and_its_steps_know_what_the_job_was_submitted_with(app):
    @app.step
    def asked() -> list[str | None]:
        me = current()
        return [me.workflow, me.key, *me.tags]

    @app.tx
    def asked_in_a_transaction(_db) -> list[str | None]:
        return asked.fn()

    @app.workflow
    def order() -> list[list[str | None]]:
        return [asked.fn(), asked(), asked_in_a_transaction()]

    with app.worker():
        told = order.opts(idempotency_key="order-7", tags=["blue", "net"]).submit().result(10)
        assert told == [["order", "order-7", "blue", "net"]] * 3
        assert order.submit().result(10) == [["order", None]] * 3


def test_an_async_job_knows_the_same_when_it_goes_on_after_a_wait(app):
    @app.step
    async def asked() -> list[str | int | None]:
        me = current()
        return [me.workflow, me.key, *me.tags, me.attempt]

    @app.workflow
    async def order() -> list[list[str | int | None]]:
        first = await asked()
        await aio.wait("go", str)
        return [first, await asked()]

    with app.worker():
        job = order.opts(idempotency_key="order-8", tags=["red"]).submit()
        job.send("go", "now")
        first, second = job.result(10)
    assert first == ["order", "order-8", "red", 1]
    assert second[:-1] == first[:-1]


def test_a_step_has_one_name_for_others_however_often_it_is_tried(app):
    seen: list[tuple[str, int, int, str]] = []

    @app.step(retry=Retry(3, first="1ms"))
    def charge(fails: int) -> None:
        me = current()
        seen.append((me.name, me.occurrence, me.try_number, me.idempotency_key))
        if me.try_number <= fails:
            raise ConnectionError("away")

    @app.workflow
    def order() -> None:
        charge(0)
        charge(2)

    with app.worker():
        job = order.submit()
        job.result(10)
    assert seen == [
        ("charge", 1, 1, f"{job.id}:0:charge#1"),
        *(("charge", 2, number, f"{job.id}:0:charge#2") for number in (1, 2, 3)),
    ]


def test_async_steps_that_run_at_once_know_which_of_them_they_are(app):
    @app.step
    async def part() -> str:
        await asyncio.sleep(0)
        return current().idempotency_key

    @app.step
    def part_in_a_thread() -> str:
        return current().idempotency_key

    @app.workflow
    async def order() -> list[str]:
        parts = [part.named("a")(), part.named("b")(), part_in_a_thread.aio()]
        return list(await asyncio.gather(*parts))

    with app.worker():
        job = order.submit()
        names = ("part.a", "part.b", "part_in_a_thread")
        assert job.result(10) == [f"{job.id}:0:{name}#1" for name in names]


def test_what_is_about_a_step_is_refused_in_the_workflow_itself(app):
    @app.workflow
    def order() -> None:
        with pytest.raises(Misuse, match=r"current\(\)\.idempotency_key is about a step"):
            _ = current().idempotency_key
        with pytest.raises(Misuse, match=r"current\(\)\.try_number is about a step"):
            _ = current().try_number

    with app.worker():
        order.submit().result(10)


def test_a_job_knows_its_deadline(app):
    @app.workflow
    def order() -> datetime | None:
        return current().deadline

    with app.worker():
        job = order.opts(deadline="1h").submit()
        told = job.result(10)
        assert order.submit().result(10) is None
    stored = job.row().deadline_at
    assert stored is not None
    assert abs(told.timestamp() * 1000 - stored) < 60_000


def test_children_know_their_parent_and_root_and_the_parent_has_a_list_of_them(app):
    @app.workflow
    def leaf() -> list[str | None]:
        return [current().job_id, current().parent_id, current().root_id]

    @app.workflow
    def branch() -> list[list[str | None]]:
        return [[current().job_id, current().parent_id, current().root_id], leaf()]

    @app.workflow
    def tree() -> list[object]:
        assert current().parent_id is None
        apart = leaf.opts(detached=True).submit()
        return [*gather(branch.child(), leaf.child()), apart.id]

    with app.worker():
        root = tree.submit()
        ((branch_told, deep), near, apart) = root.result(20)
        told_apart = app.job(apart).result(20)
    assert branch_told[1:] == [root.id, root.id]
    assert deep[1:] == [branch_told[0], root.id]
    assert near[1:] == [root.id, root.id]
    assert told_apart == [apart, root.id, apart], "it keeps its parent, and begins a tree of its own"
    assert {job.id for job in root.children()} == {branch_told[0], near[0], apart}
    (first, *rest) = root.children()
    assert root.children(limit=1) == [first]
    assert root.children(after=first) == rest
    assert asyncio.run(root.children_aio()) == [first, *rest]
    assert [job.id for job in app.job(branch_told[0]).children()] == [deep[0]]
    assert app.job(deep[0]).children() == []
