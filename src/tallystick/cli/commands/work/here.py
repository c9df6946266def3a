"""One worker in this process: say what it serves, watch what it does, stop it with grace."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tallystick.app.api.runtime import Runtime
from tallystick.app.running.working import start_worker
from tallystick.cli.commands.work.progress import Progress, WorkReporter, summary
from tallystick.cli.commands.work.signals import StopRequests
from tallystick.cli.loading import Loaded, broken
from tallystick.cli.render.output import READER_GONE
from tallystick.cli.render.wording import count, span
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.lifecycles import JobState
from tallystick.engine.job_log import JOB_LOG, reclaimed_words
from tallystick.engine.observe import Claimed, JobFinished, JobHeld, Observers, Reclaimed, SegmentLeft
from tallystick.errors import TallyError
from tallystick.store.api import Cycle, EndAttempt, EndJob, Fence
from tallystick.watch import exposition
from tallystick.worker.options import WorkerOptions
from tallystick.worker.worker import Worker

_LOOK_SECONDS: Final = 0.25


def serve(
    loaded: Loaded,
    options: WorkerOptions,
    reporter: WorkReporter,
    *,
    watch_stdin: bool,
    metrics: tuple[str, int] | None = None,
) -> int:
    """Work until asked to stop; return 0 when everything that ran here came to its end.

    Raise what keeps this worker from its first look for good: it would stand idle for ever.
    """
    requests = StopRequests(watch_stdin=watch_stdin, at_once=lambda: None)
    watch = Watch(reporter)
    runtime = loaded.app.runtime()
    watch.listen(runtime.observers)
    with requests.installed(), told_by_log(reporter), _series(runtime, metrics, reporter) as watch_slots:
        reporter.event("serving", described(loaded, options), **fields_of(loaded, options))
        try:
            worker = _started(loaded, options)
            watch_slots(worker)
            while not requests.wait(_LOOK_SECONDS) and not reporter.reader_gone:
                worker.refusals.check()
                reporter.progress(watch.progress(len(worker.running)))
            running = len(worker.running)
            grace = (
                f"{running} running, with {span(options.grace_ms)} to end"
                if running
                else "nothing is running"
            )
            reporter.event("stopping", f"{requests.reason}: {grace}", reason=requests.reason, running=running)
        finally:
            complete = runtime.stop_worker()
            loaded.app.close()
    left = len(worker.running)
    progress = watch.progress(left)
    words = summary(progress) if complete else f"{summary(progress)}, {left} left to their leases"
    reporter.event("stopped", words, complete=complete, **progress._asdict())
    if reporter.reader_gone:
        return READER_GONE
    return 0 if complete else 1


@contextmanager
def _series(
    runtime: Runtime, address: tuple[str, int] | None, reporter: WorkReporter
) -> Iterator[Callable[[Worker], None]]:
    """Serve the series of this process and of its store, if an address for that was given."""
    if address is None:
        yield lambda _worker: None
        return
    prometheus = exposition()
    host, port = address
    process = prometheus.ProcessSeries(runtime.observers)
    process.registry.register(prometheus.StoreSeries(runtime.store, runtime.clock))
    port, stop = prometheus.serve_series(process.registry, host, port)
    reporter.event("metrics", f"metrics at http://{host}:{port}/metrics", host=host, port=port)
    try:
        yield process.watch_slots
    finally:
        stop()


def _started(loaded: Loaded, options: WorkerOptions) -> Worker:
    """Start the worker, and what the program wants before it; if that raises, show its place."""
    try:
        return start_worker(loaded.app, options)
    except (TallyError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 (a function of the user's file; said in two lines)
        raise broken(loaded.address, error) from None


def described(loaded: Loaded, options: WorkerOptions, processes: int = 1) -> str:
    """Return what is served, from which file, on which store."""
    names = [f"{name} (version {version})" if version else name for name, version in loaded.app.workflows]
    slots = f"{options.concurrency} at once" + (f" in each of {processes} processes" if processes > 1 else "")
    return "\n".join(
        (
            f"serving {loaded.address} from {loaded.file or 'memory'}",
            f"  store      {loaded.app.runtime().store.url.removeprefix('sqlite:///')}",
            f"  workflows  {', '.join(names)}",
            f"  queues     {', '.join(options.queues)}",
            f"  {slots}, lease {span(options.lease_ms)}, process {os.getpid()}",
            *([] if options.keep_ms is None else [f"  jobs that ended go after {span(options.keep_ms)}"]),
        )
    )


def fields_of(loaded: Loaded, options: WorkerOptions) -> dict[str, object]:
    """Return the same for programs."""
    return {
        "app": loaded.address,
        "file": str(loaded.file) if loaded.file else None,
        "url": loaded.app.runtime().store.url,
        "workflows": [{"name": name, "version": version} for name, version in loaded.app.workflows],
        "queues": list(options.queues),
        "concurrency": options.concurrency,
        "lease_ms": options.lease_ms,
        "keep_ms": options.keep_ms,
        "pid": os.getpid(),
    }


class Watch:
    """Counts what a worker brings to an end, and tells of trouble, by what the observers hear."""

    def __init__(self, reporter: WorkReporter) -> None:
        """Start at zero."""
        self._reporter = reporter
        self._lock = threading.Lock()
        self._done = 0
        self._failed = 0

    def listen(self, observers: Observers) -> None:
        """Hear of everything that happens to jobs here."""
        observers.on(Claimed, self.claimed)
        observers.on(JobFinished, self.job_ended)
        observers.on(JobHeld, self.job_held)
        observers.on(Reclaimed, self.reclaimed)
        observers.on(SegmentLeft, self.segment_left)

    def progress(self, running: int) -> Progress:
        """Return the counts."""
        return Progress(running, self._done, self._failed)

    def claimed(self, claimed: Claimed) -> None:
        """Tell of jobs that begin; an attempt after a lost one is worth a line."""
        for job in claimed.jobs:
            if job.fence.attempt > 1:
                steps = count(len(job.records), "recorded step")
                # A job that was woken or turned is no trouble; one whose worker was lost is, by any driver.
                usual = (job.driver != "start" or job.dimension > 0) and not job.charged
                kind = "woken" if usual else "again"
                self._say(kind, job.fence, job.handler, f"attempt {job.fence.attempt}, goes on after {steps}")

    def job_ended(self, end: JobFinished) -> None:
        """Note that the end of a job is durable."""
        failed = end.state != JobState.SUCCEEDED
        with self._lock:
            self._done += not failed
            self._failed += failed
        if failed:
            words = f"failed: {end.error_code}: {end.error_message}"
            self._say("failed", end.fence, end.handler, words)
        else:
            self._say("done", end.fence, end.handler, "done")

    def job_held(self, held: JobHeld) -> None:
        """Tell of a job that waits for a person."""
        self._say("held", held.fence, held.handler, f"is held ({held.hold}); see tally show")

    def reclaimed(self, taken: Reclaimed) -> None:
        """Tell of a job whose worker was lost."""
        about = {"job_id": taken.fence.job_id, "attempt": taken.fence.attempt, "became": taken.became.name}
        self._reporter.event("warning", reclaimed_words(taken), action="job.reclaimed", **about)

    def segment_left(self, left: SegmentLeft) -> None:
        """Tell of a segment that leaves its job to another attempt."""
        match left.end:
            case EndJob() | EndAttempt(hold=str()):
                return
            case EndAttempt(reason=AbortReason.HELD):
                kind, words = "held", "is paused; tally resume lets it go on"
            case EndAttempt(reason=AbortReason.ERROR):
                kind, words = "again_later", "raised, and is tried again later"
            case EndAttempt(reason=AbortReason.RELEASED):
                kind, words = "released", "goes back to the queue"
            case Cycle():
                kind, words = "turned", "begins its next turn"
            case _ if left.suspended:
                kind, words = "waits", "waits, without a worker"
            case _:
                kind, words = "lost", "is left to another attempt"
        self._say(kind, left.fence, left.handler, words)

    def _say(self, kind: str, fence: Fence, name: str, words: str) -> None:
        if self._reporter.says(kind):
            text = f"job {fence.job_id} ({name}) {words}"
            self._reporter.event(kind, text, job_id=fence.job_id, workflow=name, attempt=fence.attempt)


class _LogReporter(logging.Handler):
    """Turns what the worker logs into events; what it logs about jobs the observers have told."""

    def __init__(self, reporter: WorkReporter) -> None:
        super().__init__(logging.WARNING)
        self._reporter = reporter
        self.addFilter(lambda record: record.name != JOB_LOG)

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        try:
            self._reporter.event("warning", self.format(record), action=getattr(record, "action", ""))
        except Exception:  # noqa: BLE001 (as every handler of Python's own does; a log line ends no thread)
            self.handleError(record)


@contextmanager
def told_by_log(reporter: WorkReporter, *, always: bool = False) -> Iterator[None]:
    """Say what the worker logs, unless the user's module has set up logging of its own."""
    log = logging.getLogger("tallystick")
    relay = _LogReporter(reporter)
    if always or (not logging.getLogger().handlers and not log.handlers):
        log.addHandler(relay)
    try:
        yield
    finally:
        log.removeHandler(relay)
