"""Connections of a remote worker are cut before and after the answer: nothing is lost, nothing done twice."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from tallystick.app.api.job import Job
from tallystick.engine.audit import audit
from tallystick.remote import GivenDirective, RemoteWorker, reporter, worker
from tests.remote.api_in_thread import Served, at_work, served
from tests.remote.cutting import CUT, FATES, LOST, OK, CuttingProxy, cutting
from tests.remote.test_publish import command

# Of how many requests each is cut once, and how many jobs are done meanwhile.
REQUESTS, JOBS = 6, 3


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for module in (worker, reporter):
        monkeypatch.setattr(module, "REPEAT_SECONDS_MIN", 0.01)
    # A proxy waits for what it has passed on.
    monkeypatch.setattr(worker, "WAIT_SECONDS", 0.5)
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'books.db'}"
    from tests.postgres.databases import fresh_schema

    monkeypatch.setenv("TALLYSTICK_CALLBACK_KEYS", f"k1:{'s' * 32}")
    return request.getfixturevalue("server").url(schema=fresh_schema())


class Doing:
    """Does directives, and counts how often each."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, given: GivenDirective) -> int:
        with self._lock:
            self.done[given.outbox_id] += 1
        return int(given.payload["n"])


def check(api: Served, doing: Doing, jobs: list[Job[int]]) -> None:
    """Check that every job was done once, by its first attempt, and that the books say so."""
    store = api.app.runtime().store
    assert doing.done == {f"{job.id}:s0:1": 1 for job in jobs}
    for job in jobs:
        facts = [fact.type for fact in store.history(job.id)]
        assert [each for each in facts if each != "ack"] == ["submit", "sent", "result"], facts
    assert audit(store).findings == []


def through(api: Served, proxy: CuttingProxy) -> Served:
    return api._replace(url=f"http://127.0.0.1:{proxy.port}")


@pytest.mark.slow
def test_each_request_is_cut_once(url: str):
    numbers, doing, jobs = count(), Doing(), list[Job[int]]()
    with served(url) as api, cutting(api.url) as proxy, at_work(through(api, proxy), doing, concurrency=2):
        for fate in FATES:
            for which in range(1, REQUESTS + 1):
                troubled = proxy.troubles
                at = proxy.number + which
                proxy.decide = lambda number, at=at, fate=fate: fate if number == at else OK
                # A request that does not come any more is one of the next jobs.
                while proxy.troubles == troubled:
                    made = [api.app.command(command(next(numbers))) for _ in range(JOBS)]
                    for job in made:
                        assert isinstance(job.result(timeout=60), int)
                    jobs += made
        check(api, doing, jobs)
    asked = Counter(each.partition(" ")[2] for each in proxy.cut)
    assert len(proxy.cut) == len(FATES) * REQUESTS
    # Questions for work, and reports alone and together.
    assert {"GET /v1/directives", "POST /v1/callbacks/result"} & asked.keys(), asked
    assert any("POST" in each for each in asked), asked


@pytest.mark.parametrize("period", [2, 3])
def test_a_line_that_breaks_all_the_time_delivers_all_the_same(url: str, period: int):
    doing = Doing()
    with served(url) as api, cutting(api.url) as proxy:
        # By turns before the request has arrived and after it was answered.
        proxy.decide = lambda number: OK if number % period else (CUT, LOST)[number // period % 2]
        jobs = api.submit(20)
        with at_work(through(api, proxy), doing, concurrency=4):
            assert [job.result(timeout=60) for job in jobs] == list(range(20))
        check(api, doing, jobs)
    assert {each.partition(" ")[0] for each in proxy.cut} == {CUT, LOST}


def test_a_worker_that_begins_anew_is_given_what_was_lost_on_the_way(url: str):
    doing = Doing()
    with served(url) as api, cutting(api.url) as proxy:
        (job,) = api.submit(1)
        # The answer with the directive is lost, and with it the worker.
        proxy.decide = lambda number: LOST if number == 1 else CUT
        first = RemoteWorker(through(api, proxy).url, api.key, services=["ocr"], name="w")
        first.handle("ocr")(doing)
        thread = threading.Thread(target=first.run)
        thread.start()
        while proxy.number < 3:
            thread.join(0.01)
        first.stop()
        thread.join(60)
        assert doing.done == {}
        proxy.decide = lambda _number: OK
        with at_work(through(api, proxy), doing, name="w"):
            assert job.result(timeout=60) == 0
        check(api, doing, [job])
