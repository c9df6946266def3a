"""Real jobs with remote steps in one store: answered, failed, tried again, dropped, asked to end, copied."""

from __future__ import annotations

import asyncio

from tallystick import StepFailed, again
from tallystick.testing.remote_hand import RemoteHand, expire_remote
from tallystick.testing.stepping import cancel_overdue

MINUTE = 60_000
DAY = 24 * 60 * MINUTE


def live_remotely(app, hand, clock) -> None:
    """Bring jobs with remote steps to where they stay: each has ended, and its step in another way."""
    depot = RemoteHand(app, "depot", worker="depot-1")

    @app.remote("depot")
    def fetch(what: str) -> str: ...

    @app.step
    def put_away(what: str) -> str:
        return what

    @app.workflow
    def one(what: str) -> str:
        try:
            return put_away(fetch(what))
        except StepFailed as failed:
            return failed.error_code

    @app.workflow
    async def first(what: str) -> str:
        done, _left = await asyncio.wait(
            [asyncio.ensure_future(fetch.aio(f"{what} {n}")) for n in range(2)],
            return_when=asyncio.FIRST_COMPLETED,
        )
        return await next(iter(done))

    @app.workflow
    def turns(n: int) -> str:
        fetch(f"turn {n}")
        return again(n + 1) if n < 1 else "over"

    def begun(workflow, *given):
        job = workflow.submit(*given)
        hand.work_all()
        return job, depot.look()

    ended = []
    job, directive = begun(one, "answered")
    directive.ack()
    directive.succeed("here")
    ended.append(job)
    job, directive = begun(one, "failed")
    directive.fail("GONE", "there is none", left=0)
    ended.append(job)
    job, directive = begun(one, "tried again")
    directive.fail("BUSY", "later", again=True)
    clock.advance(MINUTE)
    expire_remote(app)
    depot.take().succeed("at last")
    ended.append(job)
    hand.work_all()
    ended[0].fork(at="put_away")
    job, directive = begun(first, "either")
    other = depot.take()
    other.ack()
    directive.succeed("the first")
    ended.append(job)
    hand.work_all()
    job, directive = begun(turns, 0)
    directive.succeed("a")
    hand.work_all()
    depot.take().succeed("b")
    ended.append(job)
    job, directive = begun(one, "asked to end")
    job.cancel()
    directive.succeed("too late")
    assert cancel_overdue(app) == [job.id]
    ended.append(job)
    job = one.submit("withdrawn")
    hand.work_all()
    job.cancel()
    ended.append(job)
    job = one.submit("never taken")
    hand.work_all()
    clock.advance(DAY)
    expire_remote(app)
    ended.append(job)
    hand.work_all()
    states = [job.state() for job in ended]
    assert states == ["SUCCEEDED"] * 5 + ["CANCELLED"] * 2 + ["SUCCEEDED"], states
