"""Every move of jobs, steps and directives is walked by real processes: a server and a worker, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tallystick import Tally
from tallystick.core.lifecycles import JOB, OUTBOX, STEP
from tallystick.engine.audit import audit
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject
from tests.remote.receiver import receiving
from tests.surfaces.http.processes import Process, Server

APP = """
from tallystick import RemoteStep, Retry, Tally, Webhook

app = Tally("STORE")
SOON, LATER = Retry(2, first="100ms", longest="100ms"), Retry(2, first="1h", longest="1h")
app.service("pushed", via=Webhook("WEBHOOK", secret="s" * 32, allow_networks=["127.0.0.0/8"]))

def steps(retry):
    about = {"ack": "TIME", "lease": "TIME", "retry": retry}
    return [RemoteStep(name, service=name, **about) for name in ("ocr", "embed")]

app.protocol("scan", request_types=["scan"], steps=steps(SOON))
app.protocol("patient", request_types=["patient"], steps=steps(LATER))
app.protocol("push", request_types=["push"], steps=[RemoteStep("push", service="pushed")])

@app.workflow
def later() -> None:
    return None
"""
# What a remote worker does with each directive of a job, by the name of the job.
PLANS = {
    "succeeds": ("ack", "ok"),
    "fails": ("ack", "final"),
    "fails again and again": ("ack", "retry"),
    "is never acknowledged": (),
    "is never answered": ("ack",),
    "is stopped before its ACK": ("cancel",),
    "is stopped at work": ("ack", "cancel", "retry"),
    "is stopped between two attempts": ("ack", "retry", "cancel"),
}
ENDS = {
    "succeeds": "SUCCEEDED",
    "fails": "FAILED_FINAL",
    "fails again and again": "FAILED_FINAL",
    "is never acknowledged": "FAILED_FINAL",
    "is never answered": "FAILED_FINAL",
    "is refused by its endpoint": "FAILED_FINAL",
}
RESULTS = {
    "ok": {"status": "SUCCEEDED", "value": 1},
    "final": {"status": "FAILED", "failure_class": "NON_RETRYABLE", "error": {"code": "NO", "message": "no"}},
    "retry": {
        "status": "FAILED",
        "failure_class": "RETRYABLE",
        "error": {"code": "LATER", "message": "later"},
    },
}
# A wait of a workflow that is dropped with its job: no remote worker, so `tests/app/remote` walks it.
NOT_REMOTE = {("IN_PROGRESS", "drop", "CANCELLED")}


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", "k1:" + "s" * 32)
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'books.db'}"
        return
    subject = PostgresSubject(request.getfixturevalue("server"))
    yield subject.url
    subject.close()


class Caller:
    """A client and a remote worker over HTTP, both by hand."""

    def __init__(self, server: Server) -> None:
        self.http = server.http
        self.jobs: dict[str, str] = {}

    def command(self, name: str, request_type: str = "scan") -> None:
        about = {"tenant_id": "acme", "request_type": request_type, "input_ref": "in", "output_ref": "out"}
        said = {**about, "payload": {"plan": name}, "schema_version": "v1"}
        self.jobs[name] = self.http.post("/v1/commands", json=said).raise_for_status().json()["jobId"]

    def cancel(self, job_id: str) -> None:
        self.http.post(f"/v1/jobs/{job_id}/cancel", json={}).raise_for_status()

    def work(self) -> bool:
        """Do what the plans say with what is there, and tell whether every job has ended."""
        asked = {"service": ["ocr", "embed"], "worker": "w", "max": 16, "again": "false"}
        for directive in (
            self.http.get("/v1/directives", params=asked).raise_for_status().json()["directives"]
        ):
            for word in PLANS[directive["payload"]["plan"]]:
                self.say(directive, word)
        shown = [self.http.get(f"/v1/jobs/{job_id}").json() for job_id in self.jobs.values()]
        return all(job["completed_at"] for job in shown)

    def say(self, directive: dict[str, Any], word: str) -> None:
        if word == "cancel":
            self.cancel(directive["jobId"])
            return
        fence = {name: directive[name] for name in ("jobId", "stepId", "attempt_no", "lease_id")}
        kind, said = ("ack", {"status": "ACKED"}) if word == "ack" else ("result", RESULTS[word])
        headers = {"Authorization": f"Bearer {directive['token']}"}
        answer = self.http.post(f"/v1/callbacks/{kind}", json={**fence, **said}, headers=headers)
        assert answer.status_code == 200, (word, answer.text)


def walked(path: object) -> set[tuple[str, str]]:
    """Return the moves of a path such as `QUEUED>DISPATCHING>IN_PROGRESS`."""
    states = path.split(">") if isinstance(path, str) else []
    return set(pairwise(states))


def rows_of(machine: Any) -> set[tuple[str, str]]:
    left = {(str(each.source), each.trigger, str(each.target)) for each in machine.transitions} - NOT_REMOTE
    return {(source, target) for source, _trigger, target in left}


@pytest.mark.slow
def test_every_row_of_the_tables_is_walked(url: str, tmp_path: Path):
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving())
        receiver.answer = lambda _got: (410, {}, b"")
        app = APP.replace("WEBHOOK", receiver.url)
        server = stack.enter_context(Server(tmp_path, url, time="3s", app=app))
        stack.enter_context(server.start())
        caller = Caller(server)
        for name in PLANS:
            caller.command(name, "patient" if name.endswith("two attempts") else "scan")
        caller.command("is stopped at once")
        caller.cancel(caller.jobs["is stopped at once"])
        caller.command("is refused by its endpoint", "push")
        queued = {"workflow": "later", "arguments": {}, "delay": "1h"}
        caller.jobs["waits for its time"] = caller.http.post("/v1/jobs", json=queued).json()["jobId"]
        caller.cancel(caller.jobs["waits for its time"])
        work = ("-m", "tallystick", "work", "shop")
        stack.enter_context(Process(tmp_path, *work, TALLYSTICK_CALLBACK_URL=server.url))
        wait_until(caller.work, "the end of all jobs")
        ended = {name: server.job(job_id)["state"] for name, job_id in caller.jobs.items()}
    assert ended == {name: ENDS.get(name, "CANCELLED") for name in caller.jobs}
    tally = Tally(url)
    store = tally.runtime().store
    assert audit(store).findings == []
    jobs, steps = set[tuple[str, str]](), set[tuple[str, str]]()
    for job_id in caller.jobs.values():
        for fact in store.history(job_id):
            said = json.loads(fact.payload)
            jobs |= walked(said.get("job"))
            for path in said.get("steps", {}).values():
                steps |= walked(path)
    with tally.connect() as db:
        rows = [tuple(row) for row in db.execute("select state, reason from outbox")]
    tally.close()
    ways = {
        "publish" if state == "SENT" else "withdraw" if reason == "withdrawn" else "give_up"
        for state, reason in rows
    }
    assert rows_of(JOB) - jobs == set()
    assert rows_of(STEP) - steps == set()
    assert {each.trigger for each in OUTBOX.transitions} == ways
