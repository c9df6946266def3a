"""Spans: below the one in which a job was submitted, in any process, and none for what is only replayed."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

PROGRAM = """
    import asyncio, json, sys
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from tallystick import Retry, Tally, Tx, wait

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

    @app.workflow
    async def slow(n: int) -> int:
        return await afetch(n)

    @app.workflow
    def fails(n: int) -> int:
        raise ValueError("no")

    with app.worker():
        with tracer.start_as_current_span("request"):
            job = order.submit(1)
            job.send("go", True)
        job.result(timeout="30s")
        slow.submit(2).result(timeout="30s")
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
