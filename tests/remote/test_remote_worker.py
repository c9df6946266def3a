"""A remote worker does many directives at once, reports many at once, and loses none."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tallystick.core.remote.keys import RevokeKey
from tallystick.engine.audit import audit
from tallystick.errors import BadInput, NotKnown
from tallystick.remote import GivenDirective, RemoteWorker, worker
from tallystick.remote.line import Answered, Line
from tests.patience import wait_until
from tests.remote.api_in_thread import Served, at_work, served
from tests.remote.test_publish import command, look


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'books.db'}"


def test_many_directives_share_requests_and_flushes(url: str):
    with served(url) as api:
        jobs = api.submit(400)
        committer = api.app.runtime().committer
        before = committer.flushes
        with at_work(api, lambda given: given.payload["n"], concurrency=100):
            assert [job.result(timeout=60) for job in jobs] == list(range(400))
        # Delivered and answered: 800 requests about jobs and more.
        assert committer.flushes - before < 200
        store = api.app.runtime().store
        assert audit(store).findings == []
        facts = [[fact.type for fact in store.history(job.id) if fact.type != "ack"] for job in jobs]
        assert facts == [["submit", "sent", "result"]] * 400


def test_a_worker_whose_answers_are_full_is_given_no_copies(url: str, monkeypatch: pytest.MonkeyPatch):
    given: list[list[str]] = []
    call, two_answers = Line.call, threading.Event()

    def watched(self: Line, method: str, path: str, *more: Any) -> Answered:
        if method == "POST":
            two_answers.wait(60)  # when it asks a second time, nothing that it has is acknowledged
        answer = call(self, method, path, *more)
        if method == "GET":
            given.append([each["outbox_id"] for each in json.loads(answer.body)["directives"]])
            if len(given) == 2:
                two_answers.set()
        return answer

    monkeypatch.setattr(Line, "call", watched)
    with served(url) as api:
        jobs = api.submit(12)
        with at_work(api, lambda given: given.payload["n"], concurrency=2):
            assert [job.result(timeout=60) for job in jobs] == list(range(12))
    ids = [outbox_id for answer in given for outbox_id in answer]
    assert (len(ids), len(set(ids)), len(given[0])) == (12, 12, 2)


def test_slots_that_become_free_together_are_asked_for_together(url: str, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    call = Line.call

    def watched(self: Line, method: str, path: str, *more: Any) -> Answered:
        if method == "GET":
            asked.append(parse_qs(urlsplit(path).query)["max"][0])
        return call(self, method, path, *more)

    monkeypatch.setattr(Line, "call", watched)
    monkeypatch.setattr(worker, "GATHER_SECONDS", 60.0)
    together = threading.Barrier(8)

    def work(given: GivenDirective) -> int:
        together.wait(60)
        return given.payload["n"]

    with served(url) as api:
        jobs = api.submit(16)
        with at_work(api, work, concurrency=8):
            assert [job.result(timeout=60) for job in jobs] == list(range(16))
    assert asked[:2] == ["8", "8"]


def test_the_ack_goes_out_while_the_work_goes_on(url: str):
    with served(url) as api:
        (job,) = api.submit(1)

        def work(_given):
            wait_until(lambda: look(api.app, job.id).steps[0].state == "IN_PROGRESS", "the ACK")
            return "done"

        with at_work(api, work):
            assert job.result(timeout=60) == "done"


def test_async_handlers_run_side_by_side_on_one_loop(url: str):
    with served(url) as api:
        jobs, together = api.submit(20), asyncio.Barrier(20)

        async def work(given):
            async with together:
                return [given.payload["n"], threading.current_thread().name]

        with at_work(api, work, concurrency=20):
            assert [job.result(timeout=60) for job in jobs] == [[n, "remote-loop"] for n in range(20)]


def test_what_a_handler_raises_and_what_cannot_be_sent_is_reported(url: str):
    with served(url) as api:
        jobs = api.submit(3)

        def work(given):
            if given.payload["n"] == 0:
                return "x" * 300_000
            if given.payload["n"] == 1:
                return object()
            raise SystemExit(3)

        with at_work(api, work):
            wait_until(lambda: all(step_of(api, job.id).last_error_code for job in jobs), "three failures")
        codes = [step_of(api, job.id).last_error_code for job in jobs]
        assert codes == ["PAYLOAD_TOO_LARGE", "RESULT_NOT_JSON", "SystemExit"]


def step_of(api: Served, job_id: str):
    return look(api.app, job_id).steps[0]


def test_results_are_taken_by_their_tokens_when_the_key_is_revoked(url: str):
    with served(url) as api:
        jobs, go_on = api.submit(8), threading.Event()
        refused: list[NotKnown] = []

        def work(given):
            go_on.wait(60)
            return given.payload["n"]

        worker = RemoteWorker(api.url, api.key, services=["ocr"], concurrency=8)
        worker.handle("ocr")(work)

        def run() -> None:
            try:
                worker.run()
            except NotKnown as error:
                refused.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: {step_of(api, job.id).state for job in jobs} == {"IN_PROGRESS"}, "work")
        api.app.runtime().committer.call((RevokeKey(api.key.partition(".")[0]),))
        go_on.set()
        assert [job.result(timeout=60) for job in jobs] == list(range(8))
        thread.join(60)
        assert [error.code for error in refused] == ["NOT_KNOWN"]


def test_a_worker_has_room_for_one_at_least():
    with pytest.raises(BadInput, match="concurrency=1"):
        RemoteWorker("http://127.0.0.1:1", "k.s", services=["ocr"], concurrency=0)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://[::1", "ftp://127.0.0.1", "http://"])
def test_an_address_that_cannot_be_is_refused_at_once(url: str):
    with pytest.raises(BadInput, match="not an address"):
        RemoteWorker(url, "k.s", services=["ocr"])


@pytest.mark.parametrize("key", ["k.s\n", " k.s", "", "k.\u00e9"])
def test_a_key_that_no_request_can_carry_is_refused_and_not_shown(key: str):
    with pytest.raises(BadInput, match="no key") as refused:
        RemoteWorker("http://127.0.0.1:1", key, services=["ocr"])
    assert "k.s" not in str(refused.value)


def test_an_answer_that_cannot_be_read_is_asked_for_again_and_told_once(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    call, spoiled = Line.call, {"GET": 0, "POST": 0}

    def watched(self: Line, method: str, path: str, *more: Any) -> Answered:
        answer = call(self, method, path, *more)
        if spoiled[method] < 2:
            spoiled[method] += 1
            return answer._replace(body=b"<html>a proxy</html>")
        return answer

    monkeypatch.setattr(Line, "call", watched)
    monkeypatch.setattr(worker, "REPEAT_SECONDS_MIN", 0.001)
    with served(url) as api:
        jobs = api.submit(3)
        with at_work(api, lambda given: given.payload["n"]):
            assert [job.result(timeout=60) for job in jobs] == [0, 1, 2]
            # The RESULT was taken, and is said again until its answer can be read.
            wait_until(lambda: spoiled["POST"] == 2, "an answer that cannot be read")
        assert audit(api.app.runtime().store).findings == []
    told = [record.getMessage() for record in caplog.records if "cannot be read" in record.getMessage()]
    assert len(told) == 2


def test_a_handler_knows_the_kind_of_work_and_who_asked_for_it(url: str):
    with served(url) as api:
        asked = {"correlation_id": "c1", "traceparent": "00-11-22-01"}
        job = api.app.command(command(1, **asked))
        with at_work(api, lambda given: [given.step_type, given.correlation_id, given.traceparent]):
            assert job.result(timeout=60) == ["s0", "c1", "00-11-22-01"]
