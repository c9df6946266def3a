"""A workflow with a remote step: server, worker and remote worker are processes, and each is killed -9."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tallystick import Tally, crash
from tallystick.engine.audit import audit
from tallystick.http import api as _api  # noqa: F401 (importing it declares its points)
from tallystick.remote import worker as _worker  # noqa: F401 (as above)
from tests.patience import wait_until
from tests.surfaces.http.processes import Process, Server

APP = """
from tallystick import Retry, Tally

app = Tally("STORE")
SOON = Retry(99, first="50ms", longest="200ms")

@app.remote("ocr", ack="2s", lease="2s", retry=SOON)
def read(page: int) -> int:
    raise NotImplementedError

@app.remote("embed", ack="2s", lease="2s", retry=SOON)
async def embed(page: int) -> int:
    raise NotImplementedError

@app.step
def double(n: int) -> int:
    return 2 * n

@app.workflow(attempts=99)
def scan(page: int) -> int:
    return double(read(page)) + read(page + 1)

@app.workflow(attempts=99)
async def beside(page: int) -> int:
    import asyncio
    one, two, three = await asyncio.gather(embed(page), double.aio(page), embed(page + 1))
    return one + two + three
"""
REMOTE = """
import sys
from tallystick.remote import RemoteWorker

url, key = sys.argv[1:]
worker = RemoteWorker(url, key, services=["ocr", "embed"], name="w")

@worker.handle("ocr")
def ocr(directive):
    return directive.payload["page"] * 10

@worker.handle("embed")
async def embed(directive):
    return directive.payload["page"] * 100

worker.run()
"""
WANTED = {"scan": 100, "beside": 706}
ROUNDS_MAX = 5
# The points of each process, and at which of their visits it dies.
SERVER = [(point, visit) for point in crash.points() if point.startswith("http.") for visit in range(1, 9)]
REMOTE_WORKER = [
    (point, visit) for point in crash.points() if point.startswith("remote.") for visit in range(1, 5)
]
WORKER = {
    "sqlite": [(f"sqlite.commit.{side}", visit) for side in ("before", "after") for visit in range(1, 9)],
    "postgres": [(f"postgres.commit.{side}", visit) for side in ("before", "after") for visit in range(1, 9)],
}
OFTEN = {
    ("sqlite", "server", "http.write.after", 2),
    ("sqlite", "worker", "sqlite.commit.after", 3),
    ("postgres", "remote", "remote.worked", 2),
}
CASES = [
    pytest.param(*case, marks=[] if case in OFTEN else [pytest.mark.long], id="-".join(map(str, case)))
    for store in ("sqlite", "postgres")
    for victim, points in (("server", SERVER), ("worker", WORKER[store]), ("remote", REMOTE_WORKER))
    for case in ((store, victim, point, visit) for point, visit in points)
]


class Crew:
    """Three processes, each started again whenever it has died; one of them dies at a point, once."""

    def __init__(self, server: Server, stack: ExitStack, victim: str, armed: str) -> None:
        folder = server.folder
        (folder / "remote.py").write_text(REMOTE)
        work = ("-m", "tallystick", "work", "shop", "--lease", "2s")
        starts: dict[str, Callable[..., Process]] = {
            "server": server.start,
            "worker": lambda **env: Process(folder, *work, **env),
            "remote": lambda **env: Process(folder, "remote.py", server.url, server.key, **env),
        }
        self._starts, self._stack = starts, stack
        self.died = 0
        self._living = {
            name: self._start(name, TALLYSTICK_CRASH_AT=armed if name == victim else "") for name in starts
        }

    def _start(self, name: str, **environment: str) -> Process:
        return self._stack.enter_context(self._starts[name](**environment))

    def look_after(self) -> None:
        """Start again what has died; only kill -9 is a death that is meant."""
        for name, process in self._living.items():
            if process.code is not None:
                assert process.code == -signal.SIGKILL, process.said
                self.died += 1
                self._living[name] = self._start(name, TALLYSTICK_CRASH_AT="")


@pytest.mark.slow
@pytest.mark.parametrize(("store", "victim", "point", "visit"), CASES)
def test_a_job_ends_once_whichever_process_is_killed_where(
    store_url: str, tmp_path: Path, victim: str, point: str, visit: int
):
    with Server(tmp_path, store_url, app=APP) as server, ExitStack() as stack:
        crew = Crew(server, stack, victim, f"{point}:{visit}")
        jobs: dict[tuple[str, int], str] = {}
        rounds = 1

        def done() -> bool:
            nonlocal rounds
            crew.look_after()
            wanted = {(name, number) for name in WANTED for number in range(rounds)}
            for name, number in wanted - jobs.keys():
                said = {"workflow": name, "arguments": {"page": 3}, "idempotency_key": f"{name}-{number}"}
                made = server.try_to("POST", "/v1/jobs", json=said)
                if made is not None:
                    jobs[name, number] = made["jobId"]
            shown = [server.try_to("GET", f"/v1/jobs/{job_id}") for job_id in jobs.values()]
            if len(jobs) < len(wanted) or not all(job is not None and job["completed_at"] for job in shown):
                return False
            # The two jobs may not come by so often: then two more follow, until the process has died.
            rounds += not crew.died and rounds < ROUNDS_MAX
            return bool(crew.died) or len(wanted) == ROUNDS_MAX * len(WANTED)

        wait_until(done, "the death of the process and the end of all jobs")
        ended = {name: server.job(job_id) for name, job_id in jobs.items()}
    assert {name: (job["state"], job["result"]) for name, job in ended.items()} == {
        (name, number): ("SUCCEEDED", WANTED[name]) for name, number in jobs
    }
    assert crew.died == 1
    app = Tally(store_url)
    assert audit(app.runtime().store).findings == []
    with app.connect() as db:
        steps = [tuple(row) for row in db.execute("select name, state from steps where kind = 'remote'")]
        ends = [tuple(row) for row in db.execute("select guid from messages where kind = 'result'")]
        waiting = [tuple(row) for row in db.execute("select outbox_id from outbox where state = 'PENDING'")]
    app.close()
    times = len(jobs)
    assert sorted(steps) == [("embed", "SUCCEEDED")] * times + [("read", "SUCCEEDED")] * times
    assert (len(ends), waiting) == (2 * times, [])


def test_every_process_has_points():
    assert {point for point, _visit in SERVER} == {"http.write.before", "http.write.after"}
    assert {point for point, _visit in REMOTE_WORKER} == {"remote.given", "remote.worked", "remote.reported"}
