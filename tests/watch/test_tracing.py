"""Spans: below the one in which a job was submitted, in any process, and none for what is only replayed."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

PROGRAM = """
    import asyncio, json, sys, threading
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from tallystick import Key, Retry, Tally, Tx, aio, sleep, wait

    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    tracer = trace.get_tracer("mine")
    app = Tally(sys.argv[1])
    tried = []

    @app.step(retry=Retry(3, first="1ms"))
    def fetch(n: int) -> int:
        with tracer.start_as_current_span("GET /price"):
            tried.append(n)
            if len(tried) == 1:
                raise ConnectionError("away")
        return n

    @app.step
    async def afetch(n: int) -> int:
        with tracer.start_as_current_span("GET /async"):
            return n

    @app.tx
    def save(db: Tx, n: int) -> None:
        db.execute("create table if not exists kept (n int)")

    @app.workflow
    def part(n: int) -> int:
        return n

    @app.workflow
    def order(n: int) -> int:
        save(fetch(n))
        wait("go", bool)
        return part(n)

    @app.effect(key="charge:{n}")
    def charge(key: Key, n: int) -> int:
        with tracer.start_as_current_span("POST /charge"):
            return n

    @app.remote("warehouse")
    def pick(n: int) -> int:
        raise NotImplementedError

    @app.workflow
    def pays(n: int) -> int:
        sleep("1s")
        return charge(n)

    @app.workflow
    def ships(n: int) -> int:
        return pick(n)

    @app.workflow
    async def ships_async(n: int) -> int:
        await aio.sleep("300ms")
        return await pick.aio(n)

    @app.workflow
    async def slow(n: int) -> int:
        return await afetch(n)

    @app.workflow
    def fails(n: int) -> int:
        raise ValueError("no")

    def count(app, question: str) -> int:
        with app.connect() as db:
            return db.execute(question)[0][0]

    with app.worker():
        with tracer.start_as_current_span("request"):
            job = order.submit(1)
            job.send("go", True)
        job.result(timeout="30s")
        slow.submit(2).result(timeout="30s")
        pays.submit(4).result(timeout="30s")
        out = [ships.submit(5), ships_async.submit(6)]
        open_ones = "select count(*) from steps where kind = 'remote'"
        while app.runtime().worker.running or count(app, open_ones) < len(out):
            threading.Event().wait(0.01)
        bad = fails.submit(3)
        try:
            bad.result(timeout="30s")
        except Exception as error:
            print(type(error).__name__, file=sys.stderr)
    print(json.dumps([json.loads(span.to_json()) for span in spans.get_finished_spans()]))
"""


def traced(url: str) -> list[dict[str, Any]]:
    """Run the program on a store and return its spans."""
    program = textwrap.dedent(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-c", program, url], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def spans(tmp_path_factory) -> list[dict[str, Any]]:
    return traced(f"sqlite:///{tmp_path_factory.mktemp('traced')}/books.db")


def named(spans: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [span for span in spans if span["name"] == name]


def test_a_job_is_in_the_trace_of_the_request_that_submitted_it(spans):
    (request,) = named(spans, "request")
    (submit,) = named(spans, "submit order")
    assert submit["parent_id"] == request["context"]["span_id"]
    runs = named(spans, "run order")
    assert len(runs) >= 2, "it was left at its wait, and gone on with"
    assert {run["parent_id"] for run in runs} == {submit["context"]["span_id"]}
    assert {run["context"]["trace_id"] for run in runs} == {request["context"]["trace_id"]}


def test_a_step_is_a_span_for_each_try_and_none_when_it_is_replayed(spans):
    tries = named(spans, "step fetch")
    assert [span["attributes"]["tallystick.try"] for span in tries] == [1, 2]
    assert [span["status"]["status_code"] for span in tries] == ["ERROR", "UNSET"]
    assert len(named(spans, "tx save")) == 1


@pytest.mark.parametrize(("call", "step"), [("GET /price", "step fetch"), ("GET /async", "step afetch")])
def test_what_a_step_calls_is_below_it(spans, call, step):
    steps = {span["context"]["span_id"] for span in named(spans, step)}
    calls = named(spans, call)
    assert calls
    assert {span["parent_id"] for span in calls} <= steps


def test_a_child_is_in_the_trace_of_its_parent(spans):
    (child,) = named(spans, "run part")
    (request,) = named(spans, "request")
    assert child["context"]["trace_id"] == request["context"]["trace_id"]


def test_a_run_that_failed_says_so(spans):
    (run,) = named(spans, "run fails")
    assert run["status"]["status_code"] == "ERROR"
    assert "no" in run["status"]["description"]
    assert run["attributes"]["tallystick.state"] == "FAILED_FINAL"


def waited(spans: list[dict[str, Any]], name: str) -> list[bool]:
    """Return for each span of a wait whether it was answered in that run."""
    return [span["attributes"]["tallystick.answered"] for span in named(spans, name)]


def test_what_a_run_waits_for_has_a_span_that_says_whether_the_answer_came(spans):
    assert waited(spans, "wait go")[-1] is True
    assert waited(spans, "sleep")[:2] == [False, True], "it was put away, and taken up when its time had come"
    assert waited(spans, "children")[-1] is True
    assert waited(spans, "remote pick") == [False, False], "both were put away"
    runs = {span["context"]["span_id"] for span in spans if span["name"].startswith("run ")}
    kinds = ("wait go", "sleep", "children", "remote pick", "effect charge")
    assert {span["parent_id"] for name in kinds for span in named(spans, name)} <= runs
    assert {span["status"]["status_code"] for name in kinds for span in named(spans, name)} == {"UNSET"}


def test_an_effect_has_a_span_below_which_is_what_it_calls(spans):
    (effect,) = named(spans, "effect charge")
    (call,) = named(spans, "POST /charge")
    assert call["parent_id"] == effect["context"]["span_id"]
