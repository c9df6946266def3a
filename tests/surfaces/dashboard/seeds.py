"""A store with every kind and state of job, and twelve jobs that stand still, each for its own reason."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from tallystick import Key, RemoteStep, Tally, gather, sleep, wait
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.requests import NotPublished, StepFence, TakeDirective
from tallystick.core.verbs.holds import Hold
from tallystick.remote.publishers.webhook import Webhook
from tallystick.store.api import ClaimJobs, HoldJob
from tests.patience import wait_until

SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
COMMAND = {
    "tenant_id": "default",
    "request_type": "scan",
    "input_ref": "s3://in/1",
    "output_ref": "s3://out/1",
    "payload": {"page": 1},
    "schema_version": "v1",
}
QUEUES = ("default", "emails", "reports", "trees")


def _with_protocol(app: Tally) -> None:
    app.protocol(
        "ocr-embed",
        request_types=["scan"],
        steps=[RemoteStep("ocr", service="ocr"), RemoteStep("embed", service="embed")],
    )


class World:
    """The app, and what decides whether its jobs fail: the test repairs it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_broken = True
        self.app = app = Tally(url)
        _with_protocol(app)
        app.queue("reports", concurrency=1, hold_slots=True)

        @app.step
        def quote(order: int) -> int:
            return order * 7

        @app.step
        def ship(order: int) -> str:
            if self.is_broken and order == 13:
                raise ValueError("the warehouse knows no order 13")
            return f"parcel {order}"

        @app.effect(key="charge:{order}")
        def charge(key: Key, order: int) -> str:
            if self.is_broken and order == 77:
                raise ConnectionError("the connection was reset after the request was sent")
            return f"receipt {order}"

        @app.workflow
        def checkout(order: int) -> str:
            quote(order)
            charge(order)
            return ship(order)

        @app.workflow
        def approval(order: int) -> str:
            quote(order)
            return "approved" if wait("approve", bool) else "refused"

        @app.workflow(queue="emails")
        def newsletter(number: int) -> int:
            return quote(number)

        @app.workflow(queue="reports")
        def report(number: int) -> str:
            return str(wait("numbers", str))

        @app.workflow(queue="gpu")
        def render(number: int) -> int:
            return quote(number)

        @app.workflow(queue="trees")
        def parent(number: int) -> list[str]:
            return gather(*(leaf.child(each) for each in range(number)))

        @app.workflow(queue="trees")
        def leaf(number: int) -> str:
            return str(wait("grow", str)) if number == 1 else f"leaf {number}"

        @app.workflow
        def nap(minutes: int) -> str:
            sleep(minutes * 60)
            return "awake"

        @app.schedule("every 15m", id="quarterly")
        @app.workflow
        def tidy() -> str:
            return "tidy"

        self.checkout, self.approval, self.newsletter, self.report = checkout, approval, newsletter, report
        self.render, self.parent, self.leaf, self.nap, self.tidy = render, parent, leaf, nap, tidy

    def claim(self, workflow: str, queue: str, lease_ms: int) -> None:
        """Let a worker that does not exist claim a job."""
        runtime = self.app.runtime()
        known = frozenset({(workflow, "")})
        claim = ClaimJobs("ghost-of-a-worker", (queue,), known, 1, lease_ms, runtime.ids.token)
        claims: Any = runtime.committer.call((claim,))
        assert [each.handler for each in claims] == [workflow]

    def dead_directive(self) -> str:
        """Let the service of a protocol job refuse its directive for good, in a program of before."""
        with closing(Tally(self.url)) as before:
            _with_protocol(before)
            before.service("ocr", via=Webhook("https://ocr.example/directives", secret=SECRET))
            return self._refused(before)

    def _refused(self, app: Tally) -> str:
        runtime = app.runtime()
        job: Any = app.command(COMMAND)
        heard = runtime.committer.call((TakeDirective(job.id, "ocr", 1),))
        assert isinstance(heard, Hearing)
        assert heard.directive is not None
        fence = StepFence(job.id, "ocr", 1, heard.directive.lease_id)
        runtime.committer.call((NotPublished(fence, heard.directive.tries, "410 Gone", final=True),))
        return job.id


def _waits(job: Any) -> bool:
    why = job.why()
    return "has waited since" in why and "for a worker" not in why


def _open(job: Any) -> list[Any]:
    return [each for each in job.children() if each.row().completed_at is None]


def seed(world: World) -> dict[str, str]:
    """Fill the store; return the twelve jobs that stand still by what keeps them."""
    app = world.app
    stuck: dict[str, str] = {}
    stuck["dead directive"] = world.dead_directive()
    with app.worker(queues=QUEUES, concurrency=4):
        for number in range(6):
            world.checkout.opts(tags=["web", f"day-{number % 2}"], idempotency_key=f"order-{number}").submit(
                number
            ).result(30)
        failed = world.checkout.opts(tags=["web"]).submit(13)
        doubtful = world.checkout.opts(tags=["web"]).submit(77)
        approval = world.approval.submit(1)
        paused = world.approval.submit(2)
        changed = world.approval.submit(3)
        first, second = world.report.submit(1), world.report.opts(tags=["late"]).submit(2)
        tree = world.parent.submit(3)
        napping = world.nap.submit(60)
        wait_until(lambda: failed.row().completed_at, "the failure")
        wait_until(lambda: doubtful.row().hold, "the doubt")
        for job in (approval, paused, changed, first, tree, napping):
            wait_until(lambda job=job: _waits(job), "the wait")
        wait_until(lambda: len(_open(tree)) == 1 and _waits(_open(tree)[0]), "one child that waits")
        (child,) = _open(tree)
        child.pause("somebody looks at it")
    paused.pause("the price is being checked")
    app.runtime().committer.call((HoldJob(changed.id, Hold.MISMATCH, "step quote#1 is called pricing now"),))
    app.queues.pause("emails", by="the night shift")
    queued = world.newsletter.submit(1)
    cancelled = world.approval.submit(4)
    cancelled.cancel()
    lost = world.checkout.opts(queue="left").submit(500)
    world.claim("checkout", "left", 1)
    stopping = world.checkout.opts(queue="slow").submit(501)
    world.claim("checkout", "slow", 3_600_000)
    stopping.cancel(grace="2h")
    world.checkout.opts(delay="2h", tags=["later"]).submit(600)
    world.checkout.opts(tenant="acme").submit(700)
    return stuck | {
        "signal": approval.id,
        "paused": paused.id,
        "in doubt": doubtful.id,
        "failed": failed.id,
        "paused queue": queued.id,
        "full queue": second.id,
        "no worker": world.render.submit(1).id,
        "mismatch": changed.id,
        "child": tree.id,
        "cancelling": stopping.id,
        "lost worker": lost.id,
    }
