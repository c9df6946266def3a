"""A run is one trace, whoever records it; a resume in another process joins it."""

from __future__ import annotations

import re

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tallystick.runs.orchestrator.start import start_or_resume
from tallystick.runs.toy import toy_publishing
from tests.runs.test_recovery import resume, stopped_run
from tests.runs.worlds import around, events, fast_folder


@pytest.fixture
def root():
    with fast_folder() as folder:
        yield folder


@pytest.fixture
def recorded(monkeypatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda name, *_args, **_options: provider.get_tracer(name))
    return exporter


def test_without_an_sdk_every_event_still_has_ids_of_the_right_shape(root):
    start_or_resume(toy_publishing(), root, "r1", around=around())
    seen = events(root / "r1")
    assert len({event["trace_id"] for event in seen}) == 1
    assert all(re.fullmatch("[0-9a-f]{32}", event["trace_id"]) for event in seen)
    assert all(re.fullmatch("[0-9a-f]{16}", event["span_id"]) for event in seen)


def test_with_an_sdk_the_ids_are_those_of_its_spans(root, recorded):
    start_or_resume(toy_publishing(), root, "r1", around=around())
    spans = {f"{span.context.span_id:016x}": span for span in recorded.get_finished_spans()}
    names = sorted(span.name for span in spans.values())
    assert "run r1" in names
    assert "drafter intro" in names
    for event in events(root / "r1"):
        span = spans[event["span_id"]]
        assert event["trace_id"] == f"{span.context.trace_id:032x}"
        if "parent_span_id" in event:
            assert event["parent_span_id"] == f"{span.parent.span_id:016x}"


def test_a_resume_joins_the_trace_of_the_run(root, recorded):
    stopped_run(root)
    resume(root)
    seen = events(root / "r1")
    assert len({event["trace_id"] for event in seen}) == 1
    assert len({f"{span.context.trace_id:032x}" for span in recorded.get_finished_spans()}) == 1


def test_spans_that_a_worker_opens_are_children_of_its_own(root, recorded):
    from tallystick.runs import Pipeline

    pipeline = Pipeline("traced", {"NEW": "DONE"})

    @pipeline.node("NEW")
    def outer(work):
        with trace.get_tracer("mine").start_as_current_span("inner"):
            pass

    start_or_resume(pipeline, root, "r1", around=around())
    spans = {span.name: span for span in recorded.get_finished_spans()}
    assert spans["inner"].parent.span_id == spans["outer"].context.span_id
    assert spans["outer"].parent.span_id == spans["run r1"].context.span_id
