"""Real jobs that stay open where the other kinds end, and jobs of queues, schedules and keys that change."""

from __future__ import annotations

from tallystick import DidNotHappen, Key, RemoteStep, Retry, wait
from tallystick.testing.remote_hand import RemoteHand, expire_remote
from tallystick.testing.stepping import Death, SteppedWorker, ask_effects, die, reclaim, tick_schedules
from tests.app.effect_kinds import CALL_LEASE_MS, SETTLE_MS, Declined, Outside
from tests.app.protocol_kinds import COMMAND, MINUTE

HOUR = 60 * MINUTE


def live_in_queues(app, clock) -> None:
    """Jobs of a queue with limits, of a schedule, and under keys that change hands."""
    app.queue("few", concurrency=2, per_key=1, rate="100/1s", burst=100)
    hand = SteppedWorker(app, clock, queues=("few",))

    @app.workflow(queue="few")
    def limited(n: int) -> int:
        return n

    @app.schedule("every 1h", jitter="1m")
    @app.workflow(name="hourly", queue="few")
    def hourly() -> int:
        return 1

    app.declare_queues()
    app.declare_schedules()
    for n in range(2):
        limited.opts(limit_key="a", tags=["few"]).submit(n)
    for key in ("db", "rp"):
        rule = {"debounce": "5s"} if key == "db" else {"replace": True}
        for n in range(2):
            limited.opts(idempotency_key=key, **rule).submit(n)
    rules = {"ae": {"reuse": "after_end"}, "as": {"reuse": "after_success"}, "wa": {"unique": "while_active"}}
    for n in range(2):
        for key, rule in rules.items():
            limited.opts(idempotency_key=key, **rule).submit(n)
        clock.advance(10_000)
        hand.work_all()
    clock.advance(HOUR + MINUTE)
    tick_schedules(app)
    hand.work_all()
    # These stay: one that rests, one that was replaced, two of a key, one that a worker has, a tick.
    limited.opts(idempotency_key="db2", debounce="5s").submit(1)
    limited.opts(idempotency_key="db2", debounce="5s").submit(2)
    limited.opts(idempotency_key="rp2", replace=True, limit_key="b").submit(1)
    limited.opts(idempotency_key="rp2", replace=True, limit_key="b").submit(2)
    for n in range(2):
        limited.opts(limit_key="a", priority=1).submit(n)
    assert hand.claim() is not None
    clock.advance(HOUR)
    tick_schedules(app)


def stay_open_by_protocol(app, clock) -> None:
    """Protocol jobs, one at each point where its step can stand."""
    app.protocol(
        "scan-index",
        request_types=["scan"],
        steps=[RemoteStep("scan", service="scan"), RemoteStep("index", service="index")],
    )
    remote = RemoteHand(app, "scan", "index", worker="remote-2")

    def command(name: str):
        about = {"request_type": "scan", "doc_id": name, "idempotency_key": name}
        return app.command({**COMMAND, **about})

    command("given")
    remote.take()
    command("begun")
    remote.take().ack()
    command("second")
    remote.take().succeed({"pages": 3})
    remote.take().ack()
    command("later")
    remote.take().fail("BUSY", "later", again=True)
    asked = command("asked")
    remote.take().ack()
    asked.cancel()
    held = command("paused")
    remote.take().fail("BUSY", "later", again=True)
    held.pause(by="ann")
    again = command("again")
    remote.take().fail("BUSY", "later", again=True)
    clock.advance(10_000)
    expire_remote(app)
    assert {job.state() for job in (asked, held, again)} == {"CANCELLING", "IN_PROGRESS"}
    command("new")


def stay_open_remotely(app, hand) -> None:
    """Jobs with remote steps that are on their way, given, begun, to be tried again, or answered."""
    yard = RemoteHand(app, "yard", worker="yard-1")

    @app.remote("yard")
    def haul(what: str) -> str: ...

    @app.workflow(queue=hand.queues[0])
    def hauling(what: str) -> str:
        return haul(what)

    def begun(what: str):
        job = hauling.submit(what)
        hand.work_all()
        return job, yard.take()

    begun("given")
    begun("begun")[1].ack()
    begun("again")[1].fail("BUSY", "later", again=True)
    held, directive = begun("held")
    held.pause(by="ann")
    directive.fail("BUSY", "later", again=True)
    begun("answered")[1].succeed("here")
    asked, directive = begun("asked")
    directive.ack()
    asked.cancel()
    assert asked.state() == "CANCELLING"
    hauling.submit("on its way")
    paused = hauling.submit("paused")
    hand.work_all()
    paused.pause(by="bob")


def stay_open_with_effects(app, hand, clock) -> None:
    """Jobs whose effects are under way, rest, are in doubt, are waited for, or keep a refusal."""
    outside = Outside()

    def look(key: Key, order: int) -> object:
        return outside.answers.pop(0)

    def act(key: Key, order: int) -> str:
        outside.then()
        return f"receipt of {key}"

    rules = {"timeout": "2s", "raises": [Declined], "retry": Retry(3, first="1h")}
    bill = app.effect(name="bill", key="bill:{order}", keep_refusals=True, **rules)(act)
    seen = app.effect(name="seen", key="{order}", probe=look, settle="1m", **rules)(act)

    def billing(name: str, effect):
        @app.workflow(name=name, queue=hand.queues[0])
        def pays(number: int) -> str:
            try:
                return effect(number)
            except Declined:
                return "declined"

        return pays

    pay, look_up = billing("pay", bill), billing("look_up", seen)

    def lost(workflow, number: int, *, asked: bool = True):
        outside.then = die
        job = workflow.submit(number)
        hand.work_all()
        outside.then = lambda: None
        if asked:
            hand.expire()
            reclaim(app)
            hand.work_all()
            clock.advance(CALL_LEASE_MS + SETTLE_MS)
            reclaim(app)
        return job

    outside.then = outside.decline
    for _ in range(2):
        pay.submit(1)
        hand.work_all()
    outside.then = lambda: None
    paid = pay.submit(2)
    hand.work_all()
    paid.fork(at="bill")
    paid.fork(at="bill", fresh_keys=True)
    hand.work_all()
    outside.then = outside.busy
    pay.submit(3)
    hand.work_all()
    outside.then = outside.cut
    look_up.submit(4)
    hand.work_all()
    held = lost(pay, 5)
    assert held.row().hold == "IN_DOUBT"
    # Another that comes to its key waits for it.
    pay.submit(5)
    hand.work_all()
    answered = lost(look_up, 6)
    outside.answers = [DidNotHappen()]
    assert ask_effects(app) >= 1
    told = lost(pay, 10)
    told.resolve(happened="found", by="ann")
    asked = lost(pay, 7)
    asked.cancel(grace="1h")
    retried = lost(pay, 8)
    retried.resolve(retry=True, by="ann")
    assert (answered.state(), asked.state(), retried.state()) == ("IN_PROGRESS", "CANCELLING", "IN_PROGRESS")
    lost(pay, 9, asked=False)


def stay_held(app, hand) -> None:
    """Jobs that are held, were resumed, or are asked to stop or to end while a worker runs them."""

    @app.workflow(queue=hand.queues[0])
    def swallows() -> str:
        try:
            wait("never", bool)
        except BaseException:  # noqa: BLE001 (this is what it must not do)
            return "not believed"
        return "believed"

    @app.workflow(queue=hand.queues[0])
    def rests(n: int = 0) -> None:
        wait("go", bool)
        raise Death

    swallowed, *waiting = swallows.submit(), *(rests.submit() for _ in range(3))
    late, unclaimed = rests.opts(deadline="1d").submit(), rests.opts(delay="1d").submit()
    hand.work_all()
    held, resumed, at_work = waiting
    held.pause(by="ann")
    resumed.pause(by="ann")
    resumed.resume(by="ann")
    for job in (at_work, late):
        job.send("go", True)
        assert hand.work() == "died"
    at_work.pause(by="bob")
    late.cancel(grace="1h")
    unclaimed.pause()
    unclaimed.resume()
    assert swallowed.row().hold == "SUSPEND_SWALLOWED"
