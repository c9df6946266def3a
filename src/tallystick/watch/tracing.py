"""Spans of OpenTelemetry, for programs that have set a tracer provider: ours is never set.

A submission is a span of its own, or below the one in which it is made, and its job carries the identity of
that span (`traceparent`) to whichever process runs it. There each run of the function is a span below it, and
steps, transactions and effects are spans below the run, so that what a step calls is traced where it belongs.
What a run waits for (a signal, a while, remote steps, children) has a span in each run that comes to it: that
says whether the answer came, or the run was put away.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.environment_variables import OTEL_PYTHON_TRACER_PROVIDER
from opentelemetry.trace import (
    ProxyTracerProvider,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    format_span_id,
    format_trace_id,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tallystick.core.lifecycles import JobState
from tallystick.engine.segment import Segment
from tallystick.store.api import Bundle, EndAttempt, EndJob, Wait

_NAME: Final = "tallystick"
# Whether the program is started with a provider that OpenTelemetry loads when it is first asked for one.
_NAMED_OUTSIDE: Final = OTEL_PYTHON_TRACER_PROVIDER in os.environ
_UNKNOWN: Final = object()
_SYSTEM: Final = {"messaging.system": "tallystick"}
_PROPAGATOR: Final = TraceContextTextMapPropagator()
# What a wait is called whose name says nothing.
_WAITS: Final = {"sleep": "sleep", "group": "children"}
QUIET: Final[AbstractContextManager[None]] = nullcontext()
"""What is entered in the place of a span where nothing is traced."""


class Tracing:
    """The spans of one process, for the provider that its program has set."""

    def __init__(self, tracer: Tracer, traceparent_of: Callable[[str], str | None]) -> None:
        """Make spans with this tracer; jobs are looked up for the span that they were submitted in."""
        self._tracer = tracer
        self._traceparent_of = traceparent_of

    def submitting(self, workflow: str, queue: str) -> AbstractContextManager[object]:
        """Return the span of a submission, which is the current one while it is made."""
        return self._tracer.start_as_current_span(
            f"submit {workflow}",
            kind=SpanKind.PRODUCER,
            attributes={
                **_SYSTEM,
                "messaging.operation.type": "send",
                "messaging.destination.name": queue,
                "tallystick.workflow": workflow,
            },
        )

    @contextmanager
    def running(self, segment: Segment, ending: Callable[[], Bundle | None]) -> Iterator[None]:
        """Keep the span of one run of a workflow function; `ending` tells how it was left."""
        claimed = segment.claimed
        span = self._tracer.start_span(
            f"run {claimed.handler}",
            _below(self._traceparent_of(segment.job_id)),
            kind=SpanKind.CONSUMER,
            attributes={
                **_SYSTEM,
                "messaging.operation.type": "process",
                "messaging.message.id": segment.job_id,
                "tallystick.workflow": claimed.handler,
                "tallystick.job_id": segment.job_id,
                "tallystick.attempt": segment.fence.attempt,
                "tallystick.turn": claimed.dimension,
            },
        )
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            yield
            _say_how_it_ended(span, segment, ending())

    def step(self, kind: str, name: str, occurrence: int, tries: int) -> AbstractContextManager[object]:
        """Return the span of one try of a step, which is the current one while its function runs."""
        return self._tracer.start_as_current_span(
            f"{kind} {name}",
            attributes={
                "tallystick.step": name,
                "tallystick.occurrence": occurrence,
                "tallystick.try": tries,
            },
        )

    @contextmanager
    def waiting(self, waits: Sequence[Wait]) -> Iterator[None]:
        """Keep the span of what a run waits for, until an answer comes or the run is put away."""
        first = waits[0]
        with self._tracer.start_as_current_span(
            _WAITS.get(first.kind, f"{first.kind} {first.name}"),
            attributes={
                "tallystick.wait": first.kind,
                "tallystick.name": first.name,
                "tallystick.occurrence": first.occurrence,
                "tallystick.waits": len(waits),
                "tallystick.answered": False,
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield
            span.set_attribute("tallystick.answered", True)


def tracing_of(traceparent_of: Callable[[str], str | None]) -> Tracing | None:
    """Return the spans of this process, or None while its program has set no provider."""
    # This is what the public way looks at first; then it asks the environment, which costs every run 3 us. A
    # release of OpenTelemetry without the attribute is asked the public way.
    if not _NAMED_OUTSIDE and getattr(trace, "_TRACER_PROVIDER", _UNKNOWN) is None:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, ProxyTracerProvider):
        return None
    return Tracing(provider.get_tracer(_NAME), traceparent_of)


def traceparent() -> str | None:
    """Return the identity of the current span, as a job keeps it."""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return f"00-{format_trace_id(span.trace_id)}-{format_span_id(span.span_id)}-{span.trace_flags:02x}"


def _below(kept: str | None) -> otel_context.Context:
    """Return a context below the span that a job was submitted in, and below no other."""
    return _PROPAGATOR.extract({} if kept is None else {"traceparent": kept}, otel_context.Context())


def _say_how_it_ended(span: Span, segment: Segment, bundle: Bundle | None) -> None:
    last = bundle[-1] if bundle else None
    span.set_attribute("tallystick.suspended", segment.suspended)
    match last:
        case EndJob(state=state):
            span.set_attribute("tallystick.state", str(state))
            if state == JobState.FAILED_FINAL:
                span.set_status(Status(StatusCode.ERROR, f"{last.error_code}: {last.error_message}"))
        case EndAttempt(hold=str(hold)):
            span.set_attribute("tallystick.hold", hold)
            span.set_status(Status(StatusCode.ERROR, last.hold_reason or hold))
        case _:
            pass
