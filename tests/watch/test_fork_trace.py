"""A fork is in the trace of the request that submitted the job which it comes from."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, NoOpTracer, SpanContext, TraceFlags

from tallystick import wait
from tallystick.watch.tracing import Tracing

REQUEST = SpanContext(0xABCD, 0x1234, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def test_a_fork_and_a_retry_carry_the_trace_of_their_origin(timed, hand, monkeypatch):
    runtime = timed.runtime()
    store = runtime.store
    monkeypatch.setattr(runtime, "tracing", Tracing(NoOpTracer(), store.traceparent))

    @timed.step
    def work() -> int:
        return 1

    @timed.workflow
    def flow(good: bool) -> int:
        work()
        if not good:
            raise ValueError("no")
        wait("go", bool)
        return 1

    with trace.use_span(NonRecordingSpan(REQUEST)):
        waits, fails = flow.submit(True), flow.submit(False)
    hand.work_all()
    kept = f"00-{REQUEST.trace_id:032x}-{REQUEST.span_id:016x}-01"
    forked, retried = waits.fork(at="go"), fails.retry()
    assert {store.traceparent(job.id) for job in (waits, forked, fails, retried)} == {kept}
