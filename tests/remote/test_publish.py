"""Role publish: directives go out by webhook, and what became of each try is in the books."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tallystick import Pull, RemoteStep, Tally, Webhook
from tallystick.clock import Clock, SystemClock, VirtualClock
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.requests import AnswerStep, StepAnswer, StepFence
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture
from tallystick.engine.audit import audit
from tallystick.engine.callback_keys import callback_keys
from tallystick.errors import BadCallbackKeys, BadInput, PublishFailed
from tallystick.ids import SystemIds
from tallystick.remote.publishers.endpoint import Answer, Endpoint, Outgoing, Publisher
from tallystick.remote.signatures import verify
from tallystick.store.api import Protocols
from tests.patience import wait_until
from tests.remote.receiver import Receiver, receiving

SECRET = "a secret that nobody guesses"
LOCAL = ["127.0.0.0/8"]


def command(n: int = 0, kind: str = "scan", **members: object) -> dict[str, object]:
    about = {"tenant_id": "acme", "request_type": kind, "input_ref": "s3://in", "output_ref": "s3://out"}
    return {**about, "payload": {"n": n}, "schema_version": "v1", **members}


def webhook(receiver: Receiver) -> Webhook:
    return Webhook(receiver.url, secret=SECRET, allow_networks=LOCAL)


def declare(url: str, clock: Clock | None = None, **services: Any) -> Tally:
    """Return an app with a protocol of one step for each service, each under its own type of command."""
    app = Tally(url, callback_url="https://tally.example/", clock=clock)
    for name, via in services.items():
        app.service(name, via=via)
        app.protocol(f"{name}-protocol", request_types=[name], steps=[RemoteStep("s0", service=name)])
    return app


def store_of(app: Tally) -> Protocols:
    store = app.runtime().store
    assert isinstance(store, Protocols)
    return store


def look(app: Tally, job_id: str) -> ProtocolPicture:
    picture = store_of(app).protocol(job_id)
    assert picture is not None
    return picture


def directive(app: Tally, job_id: str) -> OutboxRow:
    row = store_of(app).directive(f"{job_id}:s0:1")
    assert row is not None
    return row


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'books.db'}"


def test_a_directive_goes_out_signed_with_its_token_and_is_noted(url: str, receiver: Receiver):
    app = declare(url, scan=webhook(receiver))
    with app.worker():
        job = app.command(command())
        wait_until(lambda: look(app, job.id).steps[0].state == "AWAITING_ACK")
        (got,) = receiver.got
        assert verify(SECRET, got.headers, got.body, SystemClock().wall_ms() // 1000) == f"{job.id}:s0:1"
        said = got.directive
        assert (said["jobId"], said["stepId"], said["attempt_no"], said["payload"]) == (
            job.id,
            "s0",
            1,
            {"n": 0},
        )
        assert said["callback_urls"]["result"] == "https://tally.example/v1/callbacks/result"
        fence = StepFence(job.id, "s0", 1, said["lease_id"])
        keys = callback_keys(app.runtime().store.url, SystemIds())
        assert keys.tenant(said["token"], fence, SystemClock().wall_ms()) == "acme"
        row = directive(app, job.id)
        assert (row.state, row.tries, row.via) == ("SENT", 1, f"webhook {receiver.url}")
        assert "token" not in row.payload
        outcome = app.runtime().committer.call((AnswerStep(fence, StepAnswer(True, "d", value="7"), "l2"),))
        assert isinstance(outcome, Hearing)
        assert job.result(timeout=10) == 7
    assert audit(app.runtime().store).findings == []
    app.close()


def test_what_another_process_submits_is_published_at_once(url: str, receiver: Receiver):
    maker, relay = declare(url, scan=webhook(receiver)), declare(url, scan=webhook(receiver))
    with relay.worker():
        job = maker.command(command())
        assert directive(maker, job.id).tries in (0, 1)
        wait_until(lambda: directive(maker, job.id).state == "SENT")
    assert [got.directive["jobId"] for got in receiver.got] == [job.id]
    maker.close()
    relay.close()


def test_one_slow_endpoint_delays_no_other(url: str, receiver: Receiver):
    with receiving() as stuck:
        stuck.held.clear()
        app = declare(url, slow=webhook(stuck), scan=webhook(receiver))
        late = [app.command(command(n, "slow")) for n in range(300)]
        with app.worker(grace="100ms"):
            wait_until(lambda: len(stuck.got) >= 64)
            jobs = [app.command(command(n)) for n in range(50)]
            wait_until(lambda: all(directive(app, job.id).state == "SENT" for job in jobs))
            assert len(stuck.got) == 64  # no more at once than the endpoint is given
        assert {directive(app, job.id).state for job in late} == {"PENDING"}
        app.close()


def test_an_error_is_logged_once_and_its_try_is_counted(
    url: str, receiver: Receiver, caplog: pytest.LogCaptureFixture
):
    receiver.answer = lambda _got: (503, {}, b"")
    app = declare(url, scan=webhook(receiver))
    with caplog.at_level(logging.WARNING, "tallystick"), app.worker():
        jobs = [app.command(command(n)) for n in range(20)]
        wait_until(lambda: len(receiver.got) == 20)
    rows = [directive(app, job.id) for job in jobs]
    assert {(row.state, row.tries) for row in rows} == {("PENDING", 1)}
    told = [
        record.getMessage() for record in caplog.records if getattr(record, "action", "") == "publish.failed"
    ]
    assert told == [f"relay: webhook {receiver.url}: the service answered 503"]
    app.close()


def test_four_tries_at_their_times_and_then_the_job_ends(url: str, receiver: Receiver):
    receiver.answer = lambda _got: (503, {}, b"")
    clock = VirtualClock()
    app = declare(url, clock=clock, scan=webhook(receiver))
    with app.worker():
        job = app.command(command())
        for tries, wait_ms in enumerate((30_000, 120_000, 600_000), start=1):
            wait_until(lambda so_far=tries: len(receiver.got) == so_far)
            assert directive(app, job.id).tries == tries
            clock.advance(wait_ms)
        wait_until(lambda: look(app, job.id).job.state == "FAILED_FINAL")
    assert len(receiver.got) == 4
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    row = directive(app, job.id)
    assert (row.state, row.tries, row.reason) == ("FAILED_FINAL", 4, "the service answered 503")
    assert look(app, job.id).job.error_code == "DISPATCH_FAILED"
    assert audit(app.runtime().store).findings == []
    app.close()


def test_a_directive_that_no_worker_can_publish_ends_by_its_tries(url: str, receiver: Receiver):
    clock = VirtualClock()
    maker = declare(url, clock=clock, scan=webhook(receiver))
    job = maker.command(command())
    other = declare(url, clock=clock, scan=Pull())
    with other.worker():
        for tries in range(1, 5):
            assert directive(maker, job.id).tries == tries - 1
            clock.advance(660_001)
            wait_until(lambda so_far=tries: directive(maker, job.id).tries == so_far)
        wait_until(lambda: look(maker, job.id).job.state == "FAILED_FINAL")
    assert receiver.got == []
    assert "declare it with app.service" in (directive(maker, job.id).reason or "")
    maker.close()
    other.close()


def test_what_the_service_never_takes_ends_the_job_at_once(url: str, receiver: Receiver):
    receiver.answer = lambda _got: (422, {}, b"no")
    app = declare(url, scan=webhook(receiver))
    with app.worker():
        job = app.command(command())
        wait_until(lambda: look(app, job.id).job.state == "FAILED_FINAL")
    picture = look(app, job.id)
    assert (picture.job.error_code, picture.job.error_message) == (
        "DISPATCH_FAILED",
        "the service scan does not accept the directive",
    )
    assert directive(app, job.id).reason == "the service answered 422"
    app.close()


def test_an_answer_without_end_is_a_failed_try(url: str, receiver: Receiver):
    receiver.answer = lambda _got: (200, {}, b"x" * 200_000)
    app = declare(url, scan=webhook(receiver))
    with app.worker():
        job = app.command(command())
        wait_until(lambda: len(receiver.got) == 1)
    assert directive(app, job.id).state == "PENDING"
    app.close()


def test_a_worker_that_stops_waits_for_what_is_on_its_way(url: str, receiver: Receiver):
    receiver.held.clear()
    app = declare(url, scan=webhook(receiver))
    with app.worker(grace="10s"):
        job = app.command(command())
        wait_until(lambda: len(receiver.got) == 1)
        receiver.held.set()
    assert directive(app, job.id).state == "SENT"
    app.close()


def test_a_directive_keeps_its_endpoint_when_the_service_moves(url: str, receiver: Receiver):
    with receiving() as moved:
        old = declare(url, scan=webhook(receiver))
        job = old.command(command())
        old.close()
        app = Tally(url, callback_url="https://tally.example")
        app.service("scan", via=webhook(moved), former=[webhook(receiver)])
        app.protocol("scan-protocol", request_types=["scan"], steps=[RemoteStep("s0", service="scan")])
        with app.worker():
            new = app.command(command(1))
            wait_until(lambda: {directive(app, each.id).state for each in (job, new)} == {"SENT"})
        assert [got.directive["jobId"] for got in receiver.got] == [job.id]
        assert [got.directive["jobId"] for got in moved.got] == [new.id]
        app.close()


def test_a_service_that_is_pulled_goes_nowhere(url: str):
    app = declare(url, scan=Pull())
    job = app.command(command())
    assert directive(app, job.id).is_pulled
    app.close()


def test_publishing_needs_an_address_for_reports(url: str, receiver: Receiver):
    app = Tally(url)
    app.service("scan", via=webhook(receiver))
    app.protocol("p", request_types=["scan"], steps=[RemoteStep("s0", service="scan")])
    with pytest.raises(BadInput, match="callback_url"), app.worker():
        pass
    app.close()


def test_publishing_does_not_begin_without_secrets(
    url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", "short:x")
    app = declare(url, scan=webhook(receiver))
    with pytest.raises(BadCallbackKeys), app.worker():
        pass
    app.close()


def test_submitting_on_a_loop_publishes_too(url: str, receiver: Receiver):
    app = declare(url, scan=webhook(receiver))
    with app.worker():
        job = asyncio.run(app.command_aio(command()))
        wait_until(lambda: directive(app, job.id).state == "SENT")
    app.close()


class Stubborn(Endpoint):
    """A broker whose library takes the first cancellation for a timeout of its own."""

    replies: ClassVar = {"ack": "stubborn:ack"}
    address: ClassVar = "stubborn nowhere"

    def connect(self) -> Publisher:
        return StubbornPublisher()


class StubbornPublisher(Publisher):
    async def publish(self, outgoing: Outgoing) -> None:
        raise PublishFailed("nowhere to go")

    async def listen(self, answer: Answer) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        await asyncio.get_running_loop().create_future()


def test_a_worker_stops_though_a_library_does_not_hear_the_first_word(url: str):
    app = declare(url, scan=Stubborn())
    with app.worker():
        pass
    assert app.runtime().relay is None
    app.close()
