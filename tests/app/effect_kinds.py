"""Real jobs with effects in one store: done, refused, given up, in doubt for a while, done by another job."""

from __future__ import annotations

from tallystick import DidNotHappen, Happened, Key, NotDone, Retry, StepFailed, again
from tallystick.testing.stepping import ask_effects, cancel_overdue, die, reclaim

SETTLE_MS = 60_000
CALL_LEASE_MS = 2_000 + 5_000


class Declined(Exception):
    pass


class Outside:
    """What the calls do, and what the probe says."""

    def __init__(self) -> None:
        self.then = lambda: None
        self.answers: list[object] = []

    def decline(self) -> None:
        raise Declined("no money")

    def busy(self) -> None:
        raise NotDone("busy")

    def cut(self) -> None:
        raise OSError("connection reset")


def live_with_effects(app, hand, clock) -> None:
    """Bring jobs with effects to where they stay: each has ended, and its effect in another way."""
    outside = Outside()

    def look(key: Key, order: int, amount: int) -> object:
        return outside.answers.pop(0)

    def act(key: Key, order: int, amount: int) -> str:
        outside.then()
        return f"receipt of {key}"

    rules = {"timeout": "2s", "raises": [Declined], "retry": Retry(3, first="1ms")}
    charge = app.effect(name="charge", key="charge:{order}", **rules)(act)
    probed = app.effect(name="probed", key="{order}", probe=look, settle="1m", **rules)(act)

    def ordering(name: str, effect):
        @app.workflow(name=name)
        def order(number: int, amount: int = 5) -> str:
            try:
                return effect(number, amount)
            except (Declined, StepFailed) as failed:
                return str(failed)

        return order

    order, asked = ordering("order", charge), ordering("asked", probed)

    @app.workflow
    def shopping(n: int = 0) -> str:
        charge(100 + n, n)
        return again(n + 1) if n < 5 else "over"

    def lost(workflow, number: int):
        """A job whose worker died in the call, once the sweep has seen it and no call can act any more."""
        outside.then = die
        job = workflow.submit(number)
        hand.work_all()
        outside.then = lambda: None
        hand.expire()
        reclaim(app)
        hand.work_all()
        clock.advance(CALL_LEASE_MS + SETTLE_MS)
        reclaim(app)
        return job

    jobs = [order.submit(1), order.submit(1), order.submit(1, 6), shopping.submit()]
    hand.work_all()
    for number, then in ((2, outside.decline), (3, outside.busy)):
        outside.then = then
        jobs.append(order.submit(number))
        hand.work_all()
    outside.then = outside.cut
    jobs.append(order.submit(4))
    hand.work_all()
    outside.then = lambda: None
    jobs[-1].resolve(happened="found", by="ann")
    jobs.append(lost(order, 5))
    jobs[-1].resolve(did_not_happen=True, by="ann")
    hand.work_all()
    for number, answer in ((6, Happened("seen")), (7, DidNotHappen())):
        jobs.append(lost(asked, number))
        outside.answers = [answer]
        assert ask_effects(app) == 1
        hand.work_all()
    asked_to_end = lost(order, 8)
    asked_to_end.cancel(grace=0)
    asked_to_end.resolve(happened="late", by="ann")
    clock.advance(1)
    cancel_overdue(app)
    hand.work_all()
    assert {job.state() for job in jobs} == {"SUCCEEDED"}, [job.state() for job in jobs]
    assert asked_to_end.state() == "CANCELLED"
    _live_past_the_end(app, hand, clock, outside, lost, order, asked)


def _live_past_the_end(app, hand, clock, outside, lost, order, asked) -> None:
    """Effects that end with their job, after it, or not at all."""

    def forced(workflow, number: int):
        job = lost(workflow, number)
        assert job.cancel(force=True, by="ann") == "CANCELLED"
        return job

    forced(order, 9).resolve(happened="found", by="bob")
    forced(order, 10).resolve(did_not_happen=True, by="bob")
    for number, answer in ((11, Happened("seen")), (12, DidNotHappen())):
        forced(asked, number)
        outside.answers = [answer]
        assert ask_effects(app) == 1
    forced(order, 13)
    unneeded = lost(order, 14)
    unneeded.resolve(did_not_happen=True, by="ann")
    assert unneeded.cancel(grace=0) in ("CANCELLED", "CANCELLING")
    clock.advance(1)
    cancel_overdue(app)
    assert unneeded.state() == "CANCELLED"
