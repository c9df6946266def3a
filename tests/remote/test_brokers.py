"""Directives and reports over real brokers: restarts, copies, full and slow ones."""

from __future__ import annotations

import asyncio
import os
import signal

import msgspec
import pytest

from tallystick import Nats, RedisStream, Tally
from tallystick.clock import VirtualClock
from tallystick.engine.audit import audit
from tallystick.errors import BadInput
from tallystick.remote.publishers.endpoint import Outgoing
from tallystick.worker.relays import relay as relaying
from tests.patience import wait_until
from tests.remote.sides import Side
from tests.remote.test_publish import command, directive, look


def report(said: dict[str, object], **members: object) -> bytes:
    fence = {name: said[name] for name in ("jobId", "stepId", "attempt_no", "lease_id")}
    return msgspec.json.encode({**fence, **members})


def wait_for(side: Side, count: int) -> list[dict[str, object]]:
    wait_until(lambda: len(side.directives()) == count, f"{count} directives")
    return sorted(side.directives(), key=lambda said: str(said["stepId"]))


def test_two_steps_are_done_over_the_broker_alone(app: Tally, side: Side):
    with app.worker():
        job = app.command(command())
        (first,) = wait_for(side, 1)
        token = str(first["token"])
        begun = side.report("ack", token, report(first))
        assert (begun["status"], begun["heard"], begun["cancelling"]) == (200, "ACCEPTED", False)
        assert begun["lease_ms"] == first["lease_ms"] == 900_000
        beat = side.report("heartbeat", token, report(first))
        assert (beat["heard"], beat["token"] != token) == ("ACCEPTED", True)
        result = report(first, status="SUCCEEDED", value=1)
        assert side.report("result", beat["token"], result)["heard"] == "ACCEPTED"
        assert side.report("result", token, result)["heard"] == "DUPLICATE"
        other = side.report("result", token, report(first, status="SUCCEEDED", value=2))
        assert (other["status"], other["heard"]) == (409, "CONFLICT")
        _first, second = wait_for(side, 2)
        assert side.report("result", token, report(second, status="SUCCEEDED")) == {"status": 401}
        assert side.report("ack", "forged", report(second))["status"] == 401
        wrong = side.report("result", str(second["token"]), report(second, status="LOST"))
        assert (wrong["status"], wrong["path"]) == (422, "status")
        done = report(second, status="SUCCEEDED", value={"pages": 3})
        assert side.report("result", str(second["token"]), done)["heard"] == "ACCEPTED"
        assert job.result(timeout=10) == {"pages": 3}
    assert audit(app.runtime().store).findings == []


def test_what_is_wrong_with_a_report_is_told_to_the_bearer_of_its_token_alone(app: Tally, side: Side):
    with app.worker():
        job = app.command(command())
        (said,) = wait_for(side, 1)
        token = str(said["token"])
        # In the form of a token, and made for nothing.
        forged = f"{token.rpartition('.')[0]}.{'A' * 43}"
        wrong = {
            "not JSON": b'{"jobId": ',
            "no object": b"[1]",
            "deep": b"[" * 10_000,
            "no status": report(said),
            "many keys": report(said, status="SUCCEEDED", value={str(n): n for n in range(1_001)}),
            "large": report(said, status="SUCCEEDED", value="x" * 300_000),
        }
        for what, body in wrong.items():
            for bad in ("", "nothing", forged):
                assert side.report("result", bad, body) == {"status": 401}, what
            answer = side.report("result", token, body)
            named = what in ("no status", "many keys", "large")
            assert (answer["status"] == 401) is not named, (what, answer)
            assert answer["status"] in (400, 401, 413, 422), (what, answer)
        assert side.report("ack", forged, report(said)) == {"status": 401}
        assert look(app, job.id).steps[0].state == "AWAITING_ACK"
        assert side.report("ack", token, report(said))["heard"] == "ACCEPTED"


def test_a_directive_that_is_published_again_is_there_once(side: Side):
    async def twice() -> None:
        publisher = side.endpoint.connect()
        for _copy in range(2):
            await publisher.publish(Outgoing("j1:s0:1", "scan-p3", b'{"outbox_id": "j1:s0:1"}'))
        await publisher.publish(Outgoing("j1:s0:2", "scan-p3", b'{"outbox_id": "j1:s0:2"}'))
        await publisher.close()

    asyncio.run(twice())
    assert [said["outbox_id"] for said in side.directives()] == ["j1:s0:1", "j1:s0:2"]


def test_a_broker_that_is_away_costs_a_try_and_comes_back(app: Tally, side: Side, clock: VirtualClock):
    side.broker.stop()
    with app.worker():
        job = app.command(command())
        wait_until(lambda: failures(app) >= 1)
        side.broker.start()
        clock.advance(30_000)
        wait_until(lambda: directive(app, job.id).state == "SENT")
        assert directive(app, job.id).tries == 2
        side.broker.stop()
        side.broker.start()
        (said,) = wait_for(side, 1)  # what was sent outlives the broker
        answer = side.report("result", str(said["token"]), report(said, status="SUCCEEDED"))
        assert answer["heard"] == "ACCEPTED"  # and reports are heard again


def test_a_full_broker_is_a_failed_try(app: Tally, side: Side, clock: VirtualClock):
    side.fill()
    with app.worker():
        job = app.command(command())
        for tries, wait_ms in enumerate((30_000, 120_000, 600_000), start=1):
            wait_until(lambda so_far=tries: failures(app) >= so_far)
            assert directive(app, job.id).tries == tries
            clock.advance(wait_ms)
        wait_until(lambda: look(app, job.id).job.state == "FAILED_FINAL")
    row = directive(app, job.id)
    assert (row.tries, row.state) == (4, "FAILED_FINAL")
    assert "maximum messages" in (row.reason or "") or "OOM" in (row.reason or "")


def test_a_broker_that_hangs_is_waited_for_so_long(
    app: Tally, side: Side, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(relaying, "PUBLISH_SECONDS", 0.5)
    pid = side.broker.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with app.worker(grace="1s"):
            job = app.command(command())
            wait_until(lambda: failures(app) == 1)
            os.kill(pid, signal.SIGCONT)
            clock.advance(30_000)
            wait_until(lambda: directive(app, job.id).state == "SENT")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert directive(app, job.id).tries == 2


@pytest.mark.parametrize("url", ["http://x", "nats:", "redis://", "somewhere"])
def test_an_address_of_another_kind_is_refused(url: str):
    with pytest.raises(BadInput):
        Nats(url, stream="WORK")
    with pytest.raises(BadInput):
        RedisStream(url)


def test_no_secret_of_an_address_is_kept():
    assert Nats("nats://user:pass@queue:4222", stream="WORK").address == "nats nats://queue:4222 WORK"
    assert "pass" not in repr(RedisStream("redis://:pass@queue:6379/1"))


def failures(app: Tally) -> int:
    """Return how many tries of the one line have failed."""
    relay = app.runtime().relay
    assert relay is not None
    (line,) = relay.lines.values()
    return line.failures
