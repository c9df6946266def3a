"""kill -9 of the server at each point of each request: said again, it ends as if nothing had happened."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tallystick import Tally, crash
from tallystick.engine.audit import audit
from tallystick.http import api as _points  # noqa: F401 (importing it declares them)
from tests.patience import wait_until
from tests.surfaces.http.processes import Server

POINTS = [name for name in crash.points() if name.startswith("http.")]
COMMITS = {
    "sqlite": ["sqlite.begin.after", "sqlite.commit.before", "sqlite.commit.after"],
    "postgres": ["postgres.commit.before", "postgres.commit.after"],
}
# What a request is answered, and what its copy is answered if it was durable when the server died.
FIRST = {"command": "made", "poll": "given", "ack": "ACCEPTED", "heartbeat": "ACCEPTED", "result": "ACCEPTED"}
AGAIN = {**FIRST, "command": "there", "ack": "DUPLICATE", "result": "DUPLICATE"}
OFTEN = {("sqlite", "http.write.after"), ("postgres", "http.write.before")}
CASES = [
    pytest.param(store, point, marks=[] if (store, point) in OFTEN else [pytest.mark.long])
    for store in ("sqlite", "postgres")
    for point in (*POINTS, *COMMITS[store])
]


class Caller:
    """Somebody who says everything until it is answered, and remembers what he was given."""

    def __init__(self, server: Server) -> None:
        self.http = server.http
        self.directive: dict = {}

    def command(self) -> str:
        about = {"tenant_id": "acme", "request_type": "scan", "input_ref": "in", "output_ref": "out"}
        made = self.http.post("/v1/commands", json={**about, "payload": {}, "schema_version": "v1"})
        return {202: "made", 200: "there"}[made.status_code]

    def poll(self) -> str:
        answer = self.http.get("/v1/directives", params={"service": "ocr", "worker": "w1", "max": 8})
        (self.directive,) = answer.raise_for_status().json()["directives"]
        return "given"

    def report(self, kind: str, **said: object) -> str:
        fence = {name: self.directive[name] for name in ("jobId", "stepId", "attempt_no", "lease_id")}
        headers = {"Authorization": f"Bearer {self.directive['token']}"}
        answer = self.http.post(f"/v1/callbacks/{kind}", json={**fence, **said}, headers=headers)
        return str(answer.raise_for_status().json()["status"])

    @property
    def verbs(self) -> dict[str, Callable[[], str]]:
        return {
            "command": self.command,
            "poll": self.poll,
            "ack": lambda: self.report("ack"),
            "heartbeat": lambda: self.report("heartbeat"),
            "result": lambda: self.report("result", status="SUCCEEDED", value=7),
        }


def test_every_moment_of_a_request_has_a_point():
    assert POINTS == ["http.write.after", "http.write.before"]


@pytest.mark.slow
@pytest.mark.parametrize(("store", "point"), CASES)
def test_a_server_that_dies_in_a_request_leaves_all_of_it_or_nothing(
    store_url: str, tmp_path: Path, point: str
):
    answered = AGAIN if point.endswith("commit.after") or point == "http.write.after" else FIRST
    with Server(tmp_path, store_url, time="10m") as server:
        caller = Caller(server)
        before: str | None = None
        for verb, say in caller.verbs.items():
            # This server first answers what killed the one before it, and then dies in turn.
            # A directive that was given is given again without a write.
            writes = before is not None and (before != "poll" or answered is FIRST)
            with server.start(TALLYSTICK_CRASH_AT=f"{point}:{2 if writes else 1}") as dies:
                if before is not None:
                    assert caller.verbs[before]() == answered[before]
                with pytest.raises(httpx.TransportError):
                    say()
                wait_until(lambda: dies.code is not None, "the death of the server")
                assert dies.code == -signal.SIGKILL
            before = verb
        with server.start():
            assert caller.verbs["result"]() == answered["result"]
            job_id = caller.directive["jobId"]
            steps = server.http.get(f"/v1/jobs/{job_id}/steps").json()["steps"]
            states = {step["stepId"]: step["state"] for step in steps}
            assert states == {"ocr": "SUCCEEDED", "embed": "DISPATCHING"}
            history = server.http.get(f"/v1/jobs/{job_id}/history").json()["history"]
            assert [fact["type"] for fact in history] == ["submit", "sent", "ack", "result"]
    app = Tally(store_url)
    assert audit(app.runtime().store).findings == []
    app.close()
