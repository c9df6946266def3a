"""Spans: the ones of OpenTelemetry when an SDK is there, and ids of the same shape when none is.

A run is one trace. A resume in another process joins the trace that the run began with.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from tallystick.ids import Ids

TRACER: Final = "tallystick.runs"


@dataclass(slots=True)
class Span:
    """One span by its ids, whether or not it is recorded."""

    trace_id: str
    span_id: str
    parent_span_id: str
    recorded: trace.Span

    def end(self, error: str = "") -> None:
        """Close the span; with a text, as a failure."""
        if error:
            self.recorded.set_status(Status(StatusCode.ERROR, error))
        self.recorded.end()

    def as_parent(self) -> otel_context.Context:
        """Return a context in which new spans are children of this one."""
        return trace.set_span_in_context(self.recorded)


def start_span(
    ids: Ids,
    name: str,
    *,
    trace_id: str = "",
    parent: Span | None = None,
    attributes: dict[str, str] | None = None,
) -> Span:
    """Open a span: below `parent`, else in the given trace, else below whatever the caller is in."""
    if parent is not None:
        context: otel_context.Context | None = parent.as_parent()
    elif trace_id:
        # The sampled flag lets a recorder see the spans of a resume; the parent itself ended with its
        # process.
        remote = SpanContext(
            int(trace_id, 16), int(_hex(ids, 16), 16), is_remote=True, trace_flags=TraceFlags(1)
        )
        context = trace.set_span_in_context(NonRecordingSpan(remote))
    else:
        context = None
    recorded = trace.get_tracer(TRACER).start_span(
        name, context=context, kind=SpanKind.INTERNAL, attributes=attributes or {}
    )
    found = recorded.get_span_context()
    parent_id = parent.span_id if parent is not None else ""
    if recorded.is_recording() and found.is_valid:
        return Span(f"{found.trace_id:032x}", f"{found.span_id:016x}", parent_id, recorded)
    own_trace = parent.trace_id if parent is not None else trace_id or _hex(ids, 32)
    return Span(own_trace, _hex(ids, 16), parent_id, recorded)


def ended_span(trace_id: str, span_id: str, parent_span_id: str) -> Span:
    """Return a span that another process has opened and that is not recorded any more."""
    return Span(trace_id, span_id, parent_span_id, trace.INVALID_SPAN)


def _hex(ids: Ids, digits: int) -> str:
    """Return hexadecimal text that is as unguessable as the source, and foreseeable where tests need it."""
    return hashlib.sha256(ids.token().encode()).hexdigest()[:digits]
