"""Real servers and remote workers that are killed: nothing is lost, nothing is done twice in the books."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tallystick.clock import SystemClock
from tallystick.engine.audit import audit
from tallystick.store.sqlite.store import SqliteStore
from tests.patience import let_time_pass, wait_until
from tests.surfaces.http.processes import Process, Server

ROOT = Path(__file__).parents[3]
JAVASCRIPT = ROOT / "examples" / "remote" / "worker.mjs"
WORKER = """
import sys, threading
from tallystick.remote import Done, RemoteFailed, RemoteWorker

url, key, name = sys.argv[1:]
worker = RemoteWorker(url, key, services=["ocr", "embed"], name=name)

@worker.handle("ocr")
def ocr(directive):
    with open(f"did-{directive.outbox_id}", "a") as file:
        print(name, file=file)
    if directive.payload["page"] == 99:
        raise RemoteFailed("NO_PAGE", "there is no such page")
    while directive.payload["page"] == 50 and not directive.wait_cancelled(1):
        pass
    return Done(output_ref=f"ocr/{directive.payload['page']}")

@worker.handle("embed")
async def embed(directive):
    return {"of": directive.input_ref}

try:
    worker.run()
except KeyboardInterrupt:
    worker.stop()
"""


def worker(server: Server, name: str) -> Process:
    (server.folder / "worker.py").write_text(WORKER)
    return Process(server.folder, "worker.py", server.url, server.key, name)


@contextmanager
def in_javascript(server: Server, service: str) -> Iterator[None]:
    process = subprocess.Popen(["node", str(JAVASCRIPT), server.url, server.key, service])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def first_step(server: Server, job_id: str) -> dict[str, Any]:
    return dict(server.http.get(f"/v1/jobs/{job_id}/steps").json()["steps"][0])


def states(server: Server, job_ids: list[str]) -> set[str]:
    return {first_step(server, each)["state"] for each in job_ids}


def books_balance(folder: Path) -> bool:
    store = SqliteStore(folder / "books.db", SystemClock())
    try:
        return audit(store).findings == []
    finally:
        store.close()


@pytest.mark.slow
def test_jobs_survive_the_death_of_a_worker_and_of_the_server(tmp_path: Path):
    with Server(tmp_path) as server:
        _survive(server, tmp_path)


def _survive(server: Server, tmp_path: Path) -> None:
    with server.start() as first:
        held = server.submit(50)
        with worker(server, "w1") as dies:
            wait_until(lambda: server.job(held)["state"] == "IN_PROGRESS", "a job under way")
            dies.kill()
        jobs = [server.submit(page) for page in range(4)]
        assert first.kill() == -signal.SIGKILL
    with worker(server, "w2") as lives, server.start() as second:
        ended = server.ended(jobs)
        assert [(job["state"], job["result"]) for job in ended] == [
            ("SUCCEEDED", {"of": f"ocr/{page}"}) for page in range(4)
        ]
        # What the dead worker held ends with its lease, or waits for its next attempt: it can be cancelled.
        asked = server.http.post(f"/v1/jobs/{held}/cancel").json()["state"]
        assert asked in ("CANCELLING", "CANCELLED")
        (cancelled,) = server.ended([held])
        assert cancelled["state"] == "CANCELLED"
        failed = server.submit(99)
        (job,) = server.ended([failed])
        assert (job["state"], job["error_code"], job["error_message"]) == (
            "FAILED_FINAL",
            "NO_PAGE",
            "there is no such page",
        )
        assert second.kill(signal.SIGTERM) == 0
        assert lives.code is None
    assert {len(path.read_text().splitlines()) for path in tmp_path.glob("did-*")} == {1}
    assert books_balance(tmp_path)


@pytest.mark.long
def test_a_dead_workers_step_is_done_by_another(tmp_path: Path):
    """The lease of two seconds ends, and after a minute the next attempt is made."""
    with Server(tmp_path) as server, server.start():
        held = server.submit(50)
        with worker(server, "w1") as dies:
            wait_until(lambda: list(tmp_path.glob(f"did-{held}:ocr:1")), "a first attempt")
            dies.kill()
        with worker(server, "w2"):
            let_time_pass(60)
            wait_until(lambda: list(tmp_path.glob(f"did-{held}:ocr:2")), "a second attempt")
            server.http.post(f"/v1/jobs/{held}/cancel")
            assert [job["state"] for job in server.ended([held])] == ["CANCELLED"]
    assert books_balance(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_worker_in_javascript_does_a_step(tmp_path: Path):
    with Server(tmp_path) as server, server.start():
        jobs = [server.submit(page) for page in range(3)]
        with in_javascript(server, "ocr"), in_javascript(server, "embed"):
            ended = server.ended(jobs)
    assert {(job["state"], job["result"]["words"]) for job in ended} == {("SUCCEEDED", 3)}
    assert books_balance(tmp_path)


def test_the_worker_in_javascript_has_forty_lines():
    lines = [line.strip() for line in JAVASCRIPT.read_text("utf-8").splitlines()]
    assert len([line for line in lines if line and not line.startswith("//")]) <= 40


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_worker_in_javascript_asks_on_beside_slow_work_and_ends_it_when_told(tmp_path: Path):
    hour = 3_600_000
    with Server(tmp_path) as server, server.start(), in_javascript(server, "ocr"):
        slow = [server.submit(page, ms=hour) for page in range(3)]
        wait_until(lambda: states(server, slow) == {"IN_PROGRESS"}, "three steps that go on")
        # One more place: what comes later is done while the three go on.
        for page in range(10, 14):
            job = server.submit(page)
            wait_until(lambda job=job: states(server, [job]) == {"SUCCEEDED"}, "work beside slow steps")
        assert states(server, slow) == {"IN_PROGRESS"}
        for job in slow:
            assert server.http.post(f"/v1/jobs/{job}/cancel").json()["state"] == "CANCELLING"
        # At the next heartbeat it hears of that and ends the work, long before an hour has passed.
        assert {job["state"] for job in server.ended(slow)} == {"CANCELLED"}
        assert {first_step(server, job)["error_code"] for job in slow} == {"AbortError"}
    assert books_balance(tmp_path)


@pytest.mark.slow
def test_who_waits_for_work_is_answered_when_the_server_stops(tmp_path: Path):
    with Server(tmp_path) as server, server.start() as process:
        answers: list[httpx.Response] = []
        asked = "/v1/directives?service=ocr&worker=w&wait=60"
        asking = threading.Thread(target=lambda: answers.append(server.http.get(asked)))
        asking.start()
        wait_until(asking.is_alive)
        assert server.http.get("/healthz").status_code == 200
        assert process.kill(signal.SIGTERM) == 0
        asking.join(30)
    assert [answer.json() for answer in answers] == [{"directives": []}]
