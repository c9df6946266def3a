"""Telemetry: told once however often it is sent, kept when the service is down, and never a run's problem."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn

from tallystick.clock import VirtualClock
from tallystick.errors import BadInput, RunFailed
from tallystick.runs import Pipeline
from tallystick.runs.orchestrator.start import request_cancel, start_or_resume
from tallystick.runs.telemetry.buffer import Buffer
from tallystick.runs.telemetry.client import TelemetryClient, flush_buffer
from tallystick.runs.telemetry.records import RecordKind, Status, TelemetryRecord, Telling
from tallystick.runs.telemetry.service import make_service
from tallystick.runs.toy import toy_publishing
from tests.runs.worlds import around, events, fast_folder


class Service:
    """A telemetry service on a free port of this machine."""

    def __init__(self, database, port: int = 0) -> None:
        listener = socket.create_server(("127.0.0.1", port))
        self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.started = threading.Event()
        self.server = uvicorn.Server(
            uvicorn.Config(make_service(database), log_level="error", lifespan="off")
        )
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self.thread.start()

    def ask(self, method: str, path: str, body: object = None, host: str = "127.0.0.1"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Host": host})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        found = json.loads(text) if answer.getheader("content-type") == "application/json" else text.decode()
        return answer.status, found

    def records(self, **filters):
        query = "&".join(f"{key}={value}" for key, value in {"limit": 1000, **filters}.items())
        return self.ask("GET", f"/api/v1/runs?{query}")[1]["records"]

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)


@contextmanager
def serving(database, port: int = 0):
    service = Service(database, port)
    try:
        yield service
    finally:
        service.stop()


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path / "telemetry.db") as found:
        yield found


@pytest.fixture
def root():
    with fast_folder() as folder:
        yield folder


def record(record_id="x", **fields):
    return {"record_id": record_id, "kind": "event", "run_id": "r1", "name": "NOTED", "ts": "now", **fields}


def test_a_record_is_created_once_and_a_duplicate_is_a_success(service):
    assert service.ask("POST", "/api/v1/runs", record()) == (201, {"record_id": "x", "created": True})
    assert service.ask("POST", "/api/v1/runs", record(name="OTHER")) == (
        200,
        {"record_id": "x", "created": False},
    )
    assert [found["name"] for found in service.records()] == ["NOTED"]


def test_a_batch_is_kept_whole_and_says_what_was_known(service):
    service.ask("POST", "/api/v1/runs", record("a"))
    batch = {"records": [record("a"), record("b"), record("c")]}
    assert service.ask("POST", "/api/v1/runs/batch", batch) == (
        200,
        {"created": 2, "duplicates": 1, "changed": 0},
    )
    bad = {"records": [record("d"), {"kind": "event"}]}
    assert service.ask("POST", "/api/v1/runs/batch", bad)[0] == 422
    assert [found["record_id"] for found in service.records()] == ["a", "b", "c"]


def test_what_became_of_a_record_is_noted(service):
    service.ask("POST", "/api/v1/runs", record(kind="run", status="running"))
    assert service.ask("PATCH", "/api/v1/runs/x", {"status": "success", "finished_at": "later"})[0] == 200
    assert service.ask("PATCH", "/api/v1/runs/y", {"status": "success"})[0] == 404
    assert service.ask("PATCH", "/api/v1/runs/x", {"error": "none"})[0] == 200
    found = service.records()[0]
    assert (found["status"], found["finished_at"], found["error"]) == ("success", "later", "none")


@pytest.mark.parametrize("source", ["manual", "llm", "ci"])
@pytest.mark.parametrize("commit", ["abcdef0", "ABCDEF0", "0" * 40])
def test_a_commit_is_associated_with_a_record(service, commit, source):
    service.ask("POST", "/api/v1/runs", record())
    body = {"commit": commit, "source": source}
    assert service.ask("POST", "/api/v1/runs/x/associate-commit", body)[0] == 200
    found = service.records()[0]
    assert (found["commit"], found["commit_source"]) == (commit.lower(), source)
    assert service.ask("POST", "/api/v1/runs/y/associate-commit", body)[0] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"commit": "abcdef", "source": "ci"}, 400),
        ({"commit": "0" * 41, "source": "ci"}, 400),
        ({"commit": "xyz1234", "source": "ci"}, 400),
        ({"commit": "abcdef0\n", "source": "ci"}, 400),
        ({"commit": "abcdef0", "source": "rumour"}, 422),
        ({"commit": "abcdef0"}, 422),
    ],
)
def test_what_is_no_commit_is_refused(service, body, status):
    service.ask("POST", "/api/v1/runs", record())
    assert service.ask("POST", "/api/v1/runs/x/associate-commit", body)[0] == status
    assert service.ask("GET", "/api/v1/runs/x")[1]["commit"] == ""


def test_a_record_is_read_by_its_id(root, service):
    with TelemetryClient(service.url, root) as client:
        start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,)))
    code, run = service.ask("GET", "/api/v1/runs/r1")
    assert (code, run["kind"], run["name"], run["status"]) == (200, "run", "publishing", "success")
    assert [run] == service.records(kind="run")
    code, item = service.ask("GET", "/api/v1/runs/r1:drafter:1:intro")
    assert (code, item["kind"], item["parent_id"], item["status"]) == (200, "child", "r1", "success")
    assert service.ask("GET", "/api/v1/runs/nobody")[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/v1/runs", b"{", 400),
        ("POST", "/api/v1/runs", b"\xff", 400),
        ("POST", "/api/v1/runs", b"[" * 100_000, 400),
        ("POST", "/api/v1/runs", b"x" * 9_000_000, 422),
        ("POST", "/api/v1/runs", record(extra=1), 422),
        ("POST", "/api/v1/runs", record(kind="thought"), 422),
        ("POST", "/api/v1/runs", record(""), 422),
        ("POST", "/api/v1/runs/batch", {"records": [record(str(n)) for n in range(1001)]}, 400),
        ("POST", "/api/v1/runs/batch", {"records": [], "changes": {}}, 422),
        ("POST", "/api/v1/runs/batch", {}, 422),
        ("POST", "/api/v1/runs", record(status="DONE"), 422),
        ("PATCH", "/api/v1/runs/x", {"status": "finished"}, 422),
        ("GET", "/api/v1/runs?status=finished", None, 422),
        ("GET", "/api/v1/runs?limit=0", None, 422),
        ("GET", "/api/v1/runs?limit=1001", None, 422),
        ("GET", "/api/v1/runs?after=x", None, 422),
        ("GET", "/api/v1/runs?after=%D9%A1", None, 422),
        ("GET", "/api/v1/runs?kind=thought", None, 422),
        ("DELETE", "/api/v1/runs/x", None, 405),
        ("GET", "/nowhere", None, 404),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, (str, int)) else "body",
)
def test_a_bad_request_gets_a_clear_answer_and_changes_nothing(service, method, path, body, status):
    assert service.ask(method, path, body)[0] == status
    assert service.records() == []


def test_pages_neither_repeat_nor_skip(service):
    service.ask("POST", "/api/v1/runs/batch", {"records": [record(f"r{n:03}") for n in range(25)]})
    seen, after = [], 0
    while after is not None:
        page = service.ask("GET", f"/api/v1/runs?limit=10&after={after}")[1]
        seen += [found["record_id"] for found in page["records"]]
        service.ask("POST", "/api/v1/runs", record(f"late{len(seen)}"))
        after = page["next"]
    assert seen[:25] == [f"r{n:03}" for n in range(25)]
    assert len(seen) == len(set(seen))


def test_health_and_metrics_tell_the_figures(service):
    service.ask("POST", "/api/v1/runs", record("a", kind="run", status="timeout"))
    service.ask("POST", "/api/v1/runs", record("a"))
    assert service.ask("GET", "/health") == (200, {"status": "ok", "records": 1})
    text = service.ask("GET", "/metrics")[1]
    assert 'tallystick_telemetry_records{kind="run",status="timeout"} 1' in text
    assert "tallystick_telemetry_told_total 2" in text
    assert "tallystick_telemetry_duplicates_total 1" in text


def test_a_page_in_a_browser_cannot_reach_the_service_by_another_name(service):
    """X05."""
    assert service.ask("GET", "/health", host="evil.example")[0] == 400


def test_the_file_of_the_service_belongs_to_its_owner_alone(tmp_path, service):
    service.ask("POST", "/api/v1/runs", record())
    assert (tmp_path / "telemetry.db").stat().st_mode & 0o077 == 0


def test_a_run_tells_about_itself_its_work_and_its_events(root, service):
    with TelemetryClient(service.url, root) as client:
        start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,)))
    assert [(found["record_id"], found["status"]) for found in service.records(kind="run")] == [
        ("r1", "success")
    ]
    children = service.records(kind="child")
    assert {found["status"] for found in children} == {"success"}
    assert {found["parent_id"] for found in children} == {"r1"}
    told = [(found["record_id"], found["name"], found["data"]) for found in service.records(kind="event")]
    logged = [(event["event_id"], event["type"], event["payload"]) for event in events(root / "r1")]
    assert told == logged


def failing() -> Pipeline:
    pipeline = Pipeline("failing", {"NEW": "DONE"})

    @pipeline.node("NEW", worker="bad")
    def bad(work):
        raise RuntimeError("no")

    @pipeline.node("NEW", worker="late")
    def late(work):
        pass

    return pipeline


def test_whatever_becomes_of_runs_and_work_is_one_of_six_words(root, service):
    with TelemetryClient(service.url, root) as client, pytest.raises(RunFailed):
        start_or_resume(failing(), root, "bad", parallel=1, around=around(listeners=(client,)))
    with TelemetryClient(service.url, root) as client:

        def cancel(recording):
            request_cancel(root, "gone")

        start_or_resume(toy_publishing(), root, "gone", around=around("b", listeners=(client, cancel)))
    found = {
        one["record_id"]: one["status"] for kind in ("run", "child") for one in service.records(kind=kind)
    }
    assert found["bad"] == "failure"
    assert found["bad:bad:1"] == "failure"
    assert found["bad:late:1"] == "cancelled"
    assert found["gone"] == "cancelled"
    assert set(found.values()) <= set(Status)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def test_a_send_that_fails_is_tried_again_after_one_two_and_four_seconds(root):
    pauses: list[float] = []
    with TelemetryClient(
        f"http://127.0.0.1:{free_port()}", root, clock=VirtualClock(), pause=pauses.append
    ) as client:
        start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,)))
    assert pauses == [1, 2, 4]
    assert client.buffer.size_bytes() > 0


def test_a_service_that_comes_back_between_two_tries_is_told_and_nothing_is_kept(root, tmp_path):
    port, pauses = free_port(), list[float]()
    with ExitStack() as closing:

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if seconds == 2:
                closing.enter_context(serving(tmp_path / "telemetry.db", port))

        with TelemetryClient(f"http://127.0.0.1:{port}", root, clock=VirtualClock(), pause=pause) as client:
            start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,)))
        assert pauses == [1, 2]
        assert client.buffer.size_bytes() == 0
        assert Buffer(root).empty(pauses.extend) == 0


def test_what_a_service_refuses_for_its_content_is_not_sent_again(root, service):
    pauses: list[float] = []
    with TelemetryClient(f"{service.url}/elsewhere", root, pause=pauses.append) as client:
        start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,)))
    assert pauses == []
    assert client.buffer.size_bytes() == 0


def test_closing_a_client_ends_its_pauses(root):
    waited: list[float] = []
    client = TelemetryClient(f"http://127.0.0.1:{free_port()}", root)
    closing = client._closing
    client._pause = lambda seconds: waited.append(seconds) or closing.wait()
    start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,)))
    client.close()
    assert not client._thread.is_alive()
    assert client.buffer.size_bytes() > 0
    assert waited == [1]


def test_what_cannot_be_told_waits_in_a_file_and_is_told_later(root, tmp_path):
    with TelemetryClient(f"http://127.0.0.1:{free_port()}", root) as client:
        snapshot = start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,)))
    assert snapshot.run_state == "DONE"
    assert client.buffer.size_bytes() > 0
    assert (root / ".telemetry.ndjson").stat().st_mode & 0o077 == 0
    with serving(tmp_path / "telemetry.db") as service:
        assert flush_buffer(service.url, root) > 0
        assert flush_buffer(service.url, root) == 0
        assert len(service.records(kind="event")) == len(events(root / "r1"))
        assert service.records(kind="run")[0]["status"] == "success"


def test_the_next_run_brings_the_backlog_along(root, tmp_path):
    Buffer(root).keep([Telling(TelemetryRecord("old", RecordKind.EVENT, "r0", "NOTED", "then"))])
    with serving(tmp_path / "telemetry.db") as service:
        with TelemetryClient(service.url, root) as client:
            start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,)))
        assert service.records()[0]["record_id"] == "old"
        assert client.buffer.size_bytes() == 0


def test_a_buffer_that_is_full_drops_the_newest_and_counts_them(root):
    buffer = Buffer(root, bytes_max=500)
    for number in range(10):
        buffer.keep([Telling(TelemetryRecord(str(number), RecordKind.EVENT, "r1", "NOTED", "now"))])
    assert buffer.size_bytes() <= 500
    assert buffer.dropped > 0
    kept: list[Telling] = []
    buffer.empty(kept.extend)
    assert [told.record.record_id for told in kept] == [str(number) for number in range(10 - buffer.dropped)]


def test_a_torn_line_in_the_buffer_is_left_out(root):
    buffer = Buffer(root)
    buffer.keep([Telling(TelemetryRecord("a", RecordKind.EVENT, "r1", "NOTED", "now"))])
    with (root / ".telemetry.ndjson").open("ab") as file:
        file.write(b'{"record":{"rec')
    kept: list[Telling] = []
    assert buffer.empty(kept.extend) == 1


def test_a_listener_that_raises_is_not_the_run_s_problem(root):
    def grumble(recording):
        raise RuntimeError("no")

    assert (
        start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(grumble,))).run_state == "DONE"
    )


def test_a_service_that_answers_nonsense_is_not_the_run_s_problem(root):
    def answer(listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.recv(100)
                peer.sendall(b"HTTP/9.9 nonsense\r\n\r\n")

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=answer, args=[listener], daemon=True).start()
    try:
        with TelemetryClient(f"http://127.0.0.1:{listener.getsockname()[1]}", root) as client:
            assert (
                start_or_resume(toy_publishing(), root, "r1", around=around(listeners=(client,))).run_state
                == "DONE"
            )
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.mark.parametrize("url", ["", "https://x", "file:///etc/passwd", "127.0.0.1:8765", "http://"])
def test_an_address_that_is_none_is_refused_before_the_run_begins(root, url):
    with pytest.raises(BadInput):
        TelemetryClient(url, root)
    assert list(root.iterdir()) == []
