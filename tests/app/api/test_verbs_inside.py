"""Verbs that write, called where they would repeat or wait for themselves: refused, with the way to do it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tallystick import Tally, Tx
from tallystick.errors import JobFailed, Misuse

SECONDS = 10


class Shop:
    """One job that waits, and everything that can be said to it or about it."""

    def __init__(self, app: Tally) -> None:
        @app.workflow
        def other(n: int) -> int:
            return n

        self.app = app
        self.other = other
        self.job = other.opts(delay="1h").submit(1)

    def submit(self) -> None:
        self.other.submit(2)

    def submit_many(self) -> None:
        self.other.submit_many([(2,)])

    def send(self) -> None:
        self.job.send("word", 1)

    def send_many(self) -> None:
        self.app.send_many([self.job], "word", 1)

    def cancel(self) -> None:
        self.job.cancel()

    def pause(self) -> None:
        self.job.pause()

    def resume(self) -> None:
        self.job.resume()

    def fork(self) -> None:
        self.job.fork(at="step")

    def retry(self) -> None:
        self.job.retry()

    def prune(self) -> None:
        self.app.prune(older_than="1h")

    def transaction(self) -> None:
        with self.app.transaction():
            pass


VERBS = sorted(name for name, value in vars(Shop).items() if callable(value) and not name.startswith("_"))
TWINS = [
    "submit_aio",
    "submit_many_aio",
    "send_aio",
    "send_many_aio",
    "cancel_aio",
    "pause_aio",
    "resume_aio",
]
ARGUMENTS = {"submit_aio": (2,), "submit_many_aio": ([(2,)],), "send_aio": ("word", 1)}


@pytest.fixture
def shop(app):
    return Shop(app)


@contextlib.contextmanager
def unchanged(shop: Shop):
    """Insist that nothing was said to the job, and no other one was made but those that the test runs."""
    before = shop.job.row(), len(shop.app.jobs(workflow="other"))
    yield
    assert (shop.job.row(), len(shop.app.jobs(workflow="other"))) == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_workflow_does_not_do_what_its_replay_would_do_again(app, shop, verb):
    @app.workflow
    def flow() -> None:
        getattr(shop, verb)()

    with app.worker(), unchanged(shop), pytest.raises(JobFailed, match=r"in a step|@app\.tx|\.child\("):
        flow.submit().result(SECONDS)


@pytest.mark.parametrize("verb", TWINS)
def test_an_async_workflow_does_not_do_what_its_replay_would_do_again(app, shop, verb):
    @app.workflow
    async def flow() -> None:
        owner = shop.other if verb.startswith("submit") else shop.app if verb == "send_many_aio" else shop.job
        arguments = ([shop.job], "word", 1) if verb == "send_many_aio" else ARGUMENTS.get(verb, ())
        await getattr(owner, verb)(*arguments)

    with app.worker(), unchanged(shop), pytest.raises(JobFailed, match=r"in a step|\.child\("):
        flow.submit().result(SECONDS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_transaction_of_a_step_does_not_wait_for_the_writer_that_it_holds(app, shop, verb):
    @app.tx
    def change(db: Tx) -> str:
        with pytest.raises(Misuse) as refusal:
            getattr(shop, verb)()
        return str(refusal.value)

    @app.workflow
    def flow() -> str:
        return change()

    with app.worker(), unchanged(shop):
        assert "within=" in (why := flow.submit().result(SECONDS)) or "outside of this transaction" in why


@pytest.mark.parametrize("verb", VERBS)
def test_a_transaction_does_not_wait_for_the_writer_that_it_holds(app, shop, verb):
    refusal = pytest.raises(Misuse, match=r"within=|outside of this transaction")
    with unchanged(shop), app.transaction(), refusal:
        getattr(shop, verb)()


def test_a_step_may_say_anything_to_another_job(app, shop):
    @app.step
    def speak() -> str:
        shop.send()
        shop.pause()
        shop.resume()
        return shop.job.cancel()

    @app.workflow
    def flow() -> str:
        return speak()

    with app.worker():
        assert flow.submit().result(SECONDS) == "CANCELLED"


def test_a_job_is_cancelled_from_a_loop_without_blocking_it(app, shop):
    async def main() -> str:
        waiting = asyncio.ensure_future(asyncio.wait_for(shop.job, SECONDS))
        state = await shop.job.cancel_aio()
        with pytest.raises(Exception, match="was cancelled"):
            await waiting
        return state

    assert asyncio.run(main()) == "CANCELLED"
