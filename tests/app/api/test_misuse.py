"""Calls that could not keep their promise are refused at once, with what to do instead."""

from __future__ import annotations

import asyncio
import enum
import functools
import json
import os
import threading

import pytest

from tallystick import JobFailed, OutsideWorkflow, StepFailed, Tally, Tx, sleep, thread_map, wait
from tallystick.errors import (
    BadInput,
    BadName,
    BadValue,
    DuplicateHandler,
    Misuse,
    PayloadTooLarge,
    StoreMisused,
    WaitInThread,
    WrongColour,
)
from tallystick.testing.stepping import count_jobs, open_store


def failure_of(job):
    with pytest.raises(JobFailed) as failed:
        job.result(10)
    return failed.value


def test_outside_a_workflow_a_step_is_the_plain_function(app):
    @app.step
    def quote(order: int) -> int:
        return order * 2

    @app.step
    async def fetch(page: int) -> int:
        return page

    @app.workflow
    def flow(order: int) -> int:
        return quote(order)

    @app.workflow
    async def crawl(page: int) -> int:
        return await fetch(page)

    assert quote(4) == 8
    assert quote.fn(4) == 8
    assert flow(4) == 8
    assert asyncio.run(fetch(3)) == 3
    assert asyncio.run(quote.aio(3)) == 6
    assert asyncio.run(crawl(3)) == 3


def test_a_transaction_cannot_be_called_outside_a_workflow(app):
    @app.tx
    def reserve(db: Tx, order: int) -> int:
        return order

    with pytest.raises(OutsideWorkflow, match=r"reserve\.fn\(db"):
        reserve(4)
    assert reserve.fn(None, 4) == 4


def test_in_a_worker_process_a_step_without_a_workflow_is_refused(app):
    """A thread that the user made has no context, and the step would silently not be durable."""
    errors = []

    @app.step
    def quote(order: int) -> int:
        return order

    def call():
        try:
            quote(1)
        except OutsideWorkflow as error:
            errors.append(error)

    @app.workflow
    def flow() -> None:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    with app.worker():
        flow.submit().result(10)
    assert "thread_map" in str(errors[0])


def test_thread_map_carries_the_workflow_into_its_threads(app):
    @app.step
    def double(n: int) -> int:
        return n * 2

    @app.workflow
    def flow() -> list[int]:
        return thread_map(lambda n: double.named(f"n{n}")(n), range(5))

    with app.worker():
        job = flow.submit()
        assert job.result(10) == [0, 2, 4, 6, 8]
    names = {json.loads(event.payload)["step"] for event in job.history() if event.name == "step"}
    assert names == {f"double.n{n}" for n in range(5)}


def test_a_wait_in_a_thread_of_its_own_is_refused_and_says_what_to_do(app):
    """Each would put the job away under the feet of the others."""

    @app.workflow
    def child() -> None: ...

    @app.workflow
    def waits() -> list[str]:
        return thread_map(lambda name: wait(name, str), ["a", "b"])

    @app.workflow
    def sleeps() -> list[None]:
        return thread_map(sleep, [0.01, 0.01])

    @app.workflow
    def gathers() -> list[object]:
        return thread_map(lambda _: child.child().result(), range(2))

    @app.workflow
    def waits_itself() -> list[str]:
        said = wait("a", str)
        return thread_map(lambda n: f"{said}{n}", range(2))

    with app.worker():
        for workflow in (waits, sleeps, gathers):
            failed = failure_of(workflow.submit())
            assert failed.fields["error_code"] == WaitInThread.code
            assert "async" in str(failed)
        job = waits_itself.submit()
        job.send("a", "x")
        assert job.result(10) == ["x0", "x1"]


def test_colours_do_not_mix(app):
    @app.step
    def sync_step() -> None: ...

    @app.step
    async def async_step() -> None: ...

    @app.workflow
    async def blocks_the_loop() -> None:
        sync_step()

    @app.workflow
    def cannot_await() -> None:
        async_step()

    with app.worker():
        assert failure_of(blocks_the_loop.submit()).fields["error_code"] == WrongColour.code
        assert "async def" in str(failure_of(cannot_await.submit()))


def test_a_step_inside_a_step_is_part_of_it(app):
    @app.step
    def inner() -> int:
        return 1

    @app.step
    def outer() -> int:
        return inner() + 1

    @app.workflow
    def flow() -> int:
        return outer()

    with app.worker():
        job = flow.submit()
        assert job.result(10) == 2
    assert [event.name for event in job.history()] == ["submit", "claim", "step", "return"]


def test_a_transaction_holds_nothing_but_itself(app):
    @app.step
    def inner() -> None: ...

    @app.tx
    def other(db: Tx) -> None: ...

    @app.tx
    def outer(db: Tx, which: str) -> None:
        (inner if which == "step" else other)()

    @app.workflow
    def flow(which: str) -> None:
        outer(which)

    with app.worker():
        for which in ("step", "tx"):
            failure = failure_of(flow.submit(which))
            assert "cannot be called inside a step or transaction" in str(failure)


def test_submitting_inside_a_workflow_is_refused_because_it_would_repeat(app):
    @app.workflow
    def child() -> None: ...

    @app.workflow
    def parent() -> None:
        child.submit()

    with app.worker():
        assert failure_of(parent.submit()).fields["error_code"] == Misuse.code


def test_a_workflow_called_by_a_workflow_is_its_child(app):
    @app.workflow
    def child(n: int) -> int:
        return n + 1

    @app.workflow
    async def async_child(n: int) -> int:
        return n * 2

    @app.workflow
    def parent() -> int:
        return child(1) + async_child.child(5).result()

    @app.workflow
    async def async_parent() -> int:
        return await async_child(2) + await child.child(5)

    @app.workflow
    def wrong() -> None:
        async_child(1)

    with app.worker():
        assert parent.submit().result(10) == 12
        assert async_parent.submit().result(10) == 10
        assert failure_of(wrong.submit()).error_code == WrongColour.code


def test_two_functions_of_one_name_are_refused_when_they_are_declared(app):
    @app.step(name="same")
    def one() -> None: ...

    with pytest.raises(DuplicateHandler, match="another name="):

        @app.step(name="same")
        def two() -> None: ...

    @app.workflow
    def flow() -> None: ...

    with pytest.raises(DuplicateHandler):
        app.workflow(name="flow")(one.fn)
    assert app.workflow(name="flow", version="2")(one.fn).version == "2"


def test_an_async_transaction_with_a_blocking_one_is_refused_when_it_is_declared(app):
    with pytest.raises(BadInput, match="write db: AsyncTx"):

        @app.tx
        async def reserve(db: Tx) -> None: ...


@pytest.mark.parametrize("name", ["", "with space", "semi;colon", "a" * 129, "dot."])
def test_names_are_checked_when_they_are_declared(app, name):
    with pytest.raises(BadInput):
        app.step(name=name or " ")(lambda: None)


@pytest.mark.parametrize("name", [5, b"bytes", 1.5, object()])
def test_a_name_that_is_no_text_is_refused_as_a_bad_name(app, name):
    def flow() -> None: ...

    for declare in (
        lambda: app.step(name=name),
        lambda: app.tx(name=name),
        lambda: app.workflow(name=name),
        lambda: app.workflow(version=name),
    ):
        with pytest.raises(BadName, match="which is no text, cannot be a"):
            declare()(flow)
    made = app.workflow(flow)
    for wish in ({"queue": name}, {"idempotency_key": name}, {"tags": [name]}):
        with pytest.raises(BadName, match="which is no text, cannot be a"):
            made.opts(**wish).submit()
    assert count_jobs(app) == {}


@pytest.mark.parametrize("priority", [1.5, 1.0, "1", [1]])
def test_a_priority_that_is_no_whole_number_is_refused(app, priority):
    @app.workflow
    def flow() -> None: ...

    with pytest.raises(BadInput, match="priority must be a whole number"):
        flow.opts(priority=priority)


def test_a_priority_may_be_a_member_of_an_enum(app):
    class Priority(enum.IntEnum):
        URGENT = 1

    @app.workflow
    def flow() -> None: ...

    assert flow.opts(priority=Priority.URGENT).submit().row().priority == 1


class Called:
    def __call__(self, order: int) -> int:
        return order


def test_what_is_no_function_cannot_be_declared(app):
    def flow(order: int) -> int:
        return order

    for declare in (app.step, app.workflow, app.step(name="called"), app.workflow(name="called")):
        with pytest.raises(BadInput, match="a Called is not a function; write one around it"):
            declare(Called())
    with pytest.raises(BadInput, match="a partial of flow has no name of its own; give it a name="):
        app.workflow(functools.partial(flow, 1))
    with pytest.raises(BadInput, match="dict does not say what it takes"):
        app.workflow(name="made")(dict)


def test_arguments_are_checked_before_anything_is_stored(app):
    @app.workflow
    def flow(order: int, note: str = "") -> None: ...

    with pytest.raises(BadValue, match="missing a required argument"):
        flow.submit()
    with pytest.raises(BadValue, match="unexpected keyword"):
        flow.submit(1, colour="red")
    with pytest.raises(BadValue, match="cannot be kept as JSON"):
        flow.submit(object())
    with pytest.raises(PayloadTooLarge):
        flow.submit(1, "x" * (1 << 20))
    with pytest.raises(BadInput, match="priority"):
        flow.opts(priority=10).submit(1)
    with pytest.raises(BadInput):
        flow.opts(queue="no such/queue").submit(1)
    with pytest.raises(BadInput):
        flow.opts(idempotency_key="").submit(1)
    assert count_jobs(app) == {}


def test_a_result_that_cannot_be_kept_fails_its_step_with_a_clear_code(app):
    @app.step
    def wrong() -> int:
        return "seven"

    @app.step
    def lost():
        return object()

    @app.workflow
    def flow(which: str) -> str:
        try:
            (wrong if which == "wrong" else lost)()
        except StepFailed as error:
            return error.error_code
        return "kept"

    with app.worker():
        assert flow.submit("wrong").result(10) == "BAD_VALUE"
        assert flow.submit("lost").result(10) == "BAD_VALUE"


def test_arguments_that_do_not_fit_the_annotation_are_refused_and_nothing_else_is(app):
    @app.workflow
    def flow(order: int) -> int:
        return order

    with app.worker():
        with pytest.raises(BadValue, match="the argument order of flow does not fit its annotation int"):
            flow.submit("seven")
        assert flow.submit(7).result(10) == 7


def test_importing_and_declaring_opens_nothing(tmp_path):
    tally = Tally(f"sqlite:///{tmp_path}/not-yet.db")
    tally.step(name="quote")(lambda: None)
    tally.workflow(name="flow")(lambda: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["mysql://x", "sqlite://", "sqlite:///", "sqlite:///x?mode=ro", "shop.db"])
def test_an_address_we_do_not_know_is_refused_with_the_one_to_write(url):
    with pytest.raises(BadInput, match=r"sqlite:///|synchronous"):
        open_store(Tally(url))


def test_what_must_wait_for_the_writer_is_refused_inside_a_transaction(app):
    """It would wait for itself: the transaction holds the writer."""

    @app.workflow
    def flow() -> None: ...

    job = flow.submit()
    with app.transaction(), pytest.raises(Misuse, match="within="):
        flow.submit()
    with app.transaction(), pytest.raises(Misuse, match="outside of this transaction"):
        job.result(1)


def test_a_workflow_does_not_wait_for_another_job_in_its_own_body(app):
    @app.workflow
    def other() -> int:
        return 1

    job = other.submit()

    @app.workflow
    def flow() -> int:
        return job.result(1)

    with app.worker():
        assert "do it in a step" in str(failure_of(flow.submit()))


def test_a_tally_used_before_a_fork_is_refused_in_the_child(app):
    @app.workflow
    def flow() -> None: ...

    flow.submit()
    child = os.fork()
    if child == 0:
        try:
            flow.submit()
        except StoreMisused:
            os._exit(7)
        os._exit(1)
    _pid, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_a_connection_for_reading_takes_any_number_of_statements_and_sees_what_is_written_meanwhile(app):
    @app.workflow
    def flow() -> None: ...

    with app.connect() as db:
        assert db.execute("select count(*) from jobs") == [(0,)]
        flow.submit()
        assert db.execute("select count(*) from jobs") == [(1,)]


def test_a_connection_reads_and_a_transaction_writes(app):
    with app.transaction() as db:
        db.execute("create table orders (n integer)")
        db.execute("insert into orders values (7)")
    with app.connect() as db:
        assert db.execute("select n from orders") == [(7,)]
    with pytest.raises(Misuse, match="write in app"), app.connect() as db:
        db.execute("insert into orders values (8)")


def test_a_connection_for_reading_may_be_asked_more_than_once(app):
    @app.workflow
    def flow() -> None: ...

    with app.connect() as db:
        assert db.execute("select count(*) from jobs") == [(0,)]
        flow.submit()
        assert db.execute("select count(*) from jobs") == [(1,)]
    with pytest.raises(Misuse, match="is for reading"), app.connect() as db:
        db.execute("delete from jobs")
