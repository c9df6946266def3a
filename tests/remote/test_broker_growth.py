"""What a broker keeps does not grow with the work that was done."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import nats
import pytest
import redis
from nats.js.api import RetentionPolicy, StreamConfig

from tallystick import Tally
from tallystick.remote.publishers.endpoint import Outgoing
from tests.patience import wait_until
from tests.remote.brokers import nats_server, redis_server
from tests.remote.sides import NatsSide, RedisSide, Side
from tests.remote.test_brokers import report
from tests.remote.test_publish import command

ROUNDS = 8
# Of Redis the last entry of a stream stays: the next directive removes it.
KEPT_MAX = 2


def done_over(app: Tally, side: Side, number: int) -> None:
    """Let one job be done, both of its steps."""
    job = app.command(command(number))
    for _step in range(2):
        said: list[dict[str, Any]] = []
        wait_until(lambda said=said: said or said.extend(side.take()), "a directive")
        token = str(said[0]["token"])
        assert side.report("ack", token, report(said[0]))["heard"] == "ACCEPTED"
        assert side.report("result", token, report(said[0], status="SUCCEEDED"))["heard"] == "ACCEPTED"
    assert job.row().state == "SUCCEEDED"


def test_what_was_done_is_not_kept(app: Tally, side: Side):
    with app.worker():
        for number in range(ROUNDS):
            done_over(app, side, number)
            wait_until(lambda: side.kept() <= KEPT_MAX, "a broker that has forgotten what was done")


def test_what_no_worker_has_taken_is_kept(side: Side):
    async def publish(first: int, last: int) -> None:
        publisher = side.endpoint.connect()
        for number in range(first, last):
            body = b'{"outbox_id": "j%d:s0:1"}' % number
            await publisher.publish(Outgoing(f"j{number}:s0:1", "scan-p3", body))
        await publisher.close()

    asyncio.run(publish(0, 5))
    assert len(side.directives()) == 5
    assert len(side.take()) == 5
    asyncio.run(publish(5, 12))
    assert sorted(said["outbox_id"] for said in side.take()) == sorted(f"j{n}:s0:1" for n in range(5, 12))


def test_an_entry_that_one_of_two_groups_has_not_acknowledged_stays(tmp_path: Path):
    async def publish(number: int) -> None:
        publisher = RedisSide(broker).endpoint.connect()
        await publisher.publish(Outgoing(f"j{number}:s0:1", "scan-p3", b"{}"))
        await publisher.close()

    with redis_server(tmp_path) as broker, redis.from_url(RedisSide(broker).url) as client:
        asyncio.run(publish(0))
        for group in ("quick", "slow"):
            client.xgroup_create("tally:scan-p3", group, id="0")
        for number in range(1, 4):
            asyncio.run(publish(number))
        entries = [entry for entry, _fields in client.xrange("tally:scan-p3")]
        client.xreadgroup("quick", "w", {"tally:scan-p3": ">"})
        client.xack("tally:scan-p3", "quick", *entries)
        client.xreadgroup("slow", "w", {"tally:scan-p3": ">"})
        # The second entry waits for its ACK, the others have it.
        client.xack("tally:scan-p3", "slow", *(each for each in entries if each != entries[1]))
        asyncio.run(publish(4))
        left = [entry for entry, _fields in client.xrange("tally:scan-p3")]
        assert left[:-1] == entries[1:]


def test_a_stream_that_is_there_is_left_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "tallystick.worker")

    async def config_of(url: str, made: StreamConfig | None = None) -> StreamConfig:
        client = await nats.connect(url)
        try:
            if made is not None:
                await client.jetstream().add_stream(made)
            return (await client.jetstream().stream_info("WORK")).config
        finally:
            await client.close()

    async def publish() -> None:
        publisher = NatsSide(broker).endpoint.connect()
        for number in range(3):
            await publisher.publish(Outgoing(f"j{number}:s0:1", "scan-p3", b"{}"))
        await publisher.close()

    with nats_server(tmp_path) as broker:
        side = NatsSide(broker)
        before = asyncio.run(config_of(side.url, StreamConfig("WORK", subjects=["WORK.>"])))
        asyncio.run(publish())
        after = asyncio.run(config_of(side.url))
        assert (after, after.retention) == (before, RetentionPolicy.LIMITS)
    told = [each for each in caplog.records if getattr(each, "action", "") == "stream.endless"]
    assert [each.args for each in told] == [("WORK",)]
