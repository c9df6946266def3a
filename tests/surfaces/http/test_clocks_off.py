"""Remote workers whose clocks are an hour off: the clock of the store decides, and theirs decide nothing."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.clock import SystemClock
from tallystick.engine.audit import audit
from tests.surfaces.http.processes import Process, Server
from tests.surfaces.http.served import COMMAND, World, serving, sqlite_url
from tests.surfaces.http.test_remote_work import poll, report

HOUR = 3_600
# A worker whose wall clock, which the program asks in these ways alone, is so many seconds ahead.
WORKER = """
import sys, time

url, key, ahead = sys.argv[1:]
now, now_ns = time.time, time.time_ns
time.time = lambda: now() + int(ahead)
time.time_ns = lambda: now_ns() + int(ahead) * 1_000_000_000

from tallystick.clock import SystemClock
from tallystick.remote import RemoteWorker

assert abs(SystemClock().wall_ms() / 1000 - now() - int(ahead)) < 60, "its clock is off"
worker = RemoteWorker(url, key, services=["ocr", "embed"], concurrency=4)

@worker.handle("ocr")
def ocr(directive):
    with open(f"did-{directive.outbox_id}", "a") as file:
        print(ahead, file=file)
    # Longer than a lease: only heartbeats keep it.
    return [int(ahead), directive.wait_cancelled(3)]

@worker.handle("embed")
def embed(directive):
    return int(ahead)

worker.run()
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    from tests.postgres.databases import fresh_schema

    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", f"k1:{'s' * 32}")
    return request.getfixturevalue("server").url(schema=fresh_schema())


@pytest.mark.slow
def test_workers_whose_clocks_are_an_hour_off_do_their_work_once(url: str, tmp_path: Path):
    (tmp_path / "worker.py").write_text(WORKER)
    clock = SystemClock()
    with Server(tmp_path, url) as server, ExitStack() as stack:
        stack.enter_context(server.start())
        began = clock.wall_ms()
        for ahead in (HOUR, -HOUR):
            stack.enter_context(Process(tmp_path, "worker.py", server.url, server.key, str(ahead)))
        jobs = [server.submit(page) for page in range(8)]
        ended = server.ended(jobs)
        steps = [server.http.get(f"/v1/jobs/{job}/steps").json()["steps"] for job in jobs]
    assert {job["state"] for job in ended} == {"SUCCEEDED"}
    for ocr, embed in steps:
        # By its first attempt, over more than a lease; no lease was thought to be lost.
        assert (ocr["attempt_no"], ocr["result"][1], embed["attempt_no"]) == (1, False, 1)
        for instant in (ocr["acked_at"], ocr["completed_at"], embed["completed_at"]):
            assert began - 1_000 <= _ms(instant) <= clock.wall_ms() + 1_000
    assert [len(path.read_text().splitlines()) for path in tmp_path.glob("did-*")] == [1] * 8
    app = Tally(url)
    assert audit(app.runtime().store).findings == []
    app.close()


@pytest.mark.parametrize("ahead", [-HOUR, HOUR], ids=["behind", "ahead"])
def test_the_timestamp_of_a_report_decides_nothing(url: str, ahead: int):
    async def test(world: World) -> None:
        client = world.known()
        await client("POST", "/v1/commands", json=COMMAND)
        (given,) = await poll(client, "ocr")
        said = datetime.now(UTC) + timedelta(seconds=ahead)
        begun = await report(world, "ack", given, timestamp=said.isoformat(), status="ACKED")
        assert (begun.json()["status"], begun.json()["lease_ms"] > 890_000) == ("ACCEPTED", True)
        beat = await report(world, "heartbeat", given, begun.json()["token"], timestamp=said.isoformat())
        assert (beat.json()["status"], beat.json()["lease_ms"] > 890_000) == ("ACCEPTED", True)
        done = await report(world, "result", given, status="SUCCEEDED", timestamp=said.isoformat())
        assert done.json()["status"] == "ACCEPTED"
        # A copy that was stamped at another time is the same RESULT.
        again = await report(world, "result", given, status="SUCCEEDED", timestamp="2001-01-01T00:00:00Z")
        assert again.json()["status"] == "DUPLICATE"
        (first, _second) = (await client("GET", f"/v1/jobs/{given['jobId']}/steps")).json()["steps"]
        now = world.app.runtime().clock.wall_ms()
        assert all(abs(_ms(first[name]) - now) < 60_000 for name in ("acked_at", "completed_at"))
        assert await asyncio.to_thread(lambda: audit(world.app.runtime().store).findings) == []

    serving(url, test)


def _ms(instant: str) -> int:
    return int(datetime.fromisoformat(instant).timestamp() * 1000)
