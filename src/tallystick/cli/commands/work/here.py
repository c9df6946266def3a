"""One worker in this process: say what it serves, watch what it does, stop it with grace."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from tallystick.cli.commands.work.progress import Progress, Reporter, summary
from tallystick.cli.commands.work.signals import StopRequests
from tallystick.cli.loading import Loaded, broken
from tallystick.cli.render.output import READER_GONE
from tallystick.cli.render.wording import count, span
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.lifecycles import JobState
from tallystick.engine.committer import LoopLane
from tallystick.engine.observe import JobFinished
from tallystick.engine.segment import Segment
from tallystick.errors import TallyError
from tallystick.store.api import Bundle, Cycle, EndAttempt, EndJob, Fence
from tallystick.worker.handler import Handler
from tallystick.worker.options import WorkerOptions
from tallystick.worker.worker import Worker

_LOOK_SECONDS: Final = 0.25

_log: Final = logging.getLogger("tallystick.cli")

_SAID_BY_COUNTS: Final = ("job.failed", "job.held")


def serve(loaded: Loaded, options: WorkerOptions, reporter: Reporter, *, watch_stdin: bool) -> int:
    """Work until asked to stop; return 0 when everything that ran here came to its end.

    Raise what keeps this worker from its first look for good: it would stand idle for ever.
    """
    requests = StopRequests(watch_stdin=watch_stdin, at_once=lambda: None)
    watch = Watch(reporter)
    runtime = loaded.app.runtime()
    runtime.observers.on(JobFinished, watch.job_ended)
    with requests.installed(), told_by_log(reporter):
        reporter.event("serving", described(loaded, options), **fields_of(loaded, options))
        try:
            worker = _started(loaded, watch, options)
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


def _started(loaded: Loaded, watch: Watch, options: WorkerOptions) -> Worker:
    """Start the worker, and what the program wants before it; if that raises, show its place."""
    try:
        return loaded.app.runtime().start_worker(watch.over(loaded.app.workflows), options, loaded.app.around)
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
    """Counts what the handlers of a worker bring to an end, and tells of trouble.

    It only looks, and the threads that call it hold leases: nothing that goes wrong here leaves it.
    """

    def __init__(self, reporter: Reporter) -> None:
        """Start at zero."""
        self._reporter = reporter
        self._lock = threading.Lock()
        self._done = 0
        self._failed = 0
        self._names: dict[str, str] = {}

    def over(self, handlers: Mapping[tuple[str, str], Handler]) -> dict[tuple[str, str], Handler]:
        """Return the handlers, each under this watch."""
        return {key: Watched(handler, self) for key, handler in handlers.items()}

    def progress(self, running: int) -> Progress:
        """Return the counts."""
        return Progress(running, self._done, self._failed)

    def begun(self, segment: Segment) -> None:
        """Note that a segment begins; an attempt after a lost one is worth a line."""
        with _only_looking():
            claimed = segment.claimed
            self._names[segment.job_id] = claimed.handler
            if segment.fence.attempt > 1:
                steps = count(len(segment.replayed), "recorded step")
                # A job that was woken or turned is no trouble; one whose worker was lost is, by any driver.
                usual = (claimed.driver != "start" or claimed.dimension > 0) and not claimed.charged
                kind = "woken" if usual else "again"
                self._say(kind, segment.fence, f"attempt {segment.fence.attempt}, goes on after {steps}")

    def job_ended(self, end: JobFinished) -> None:
        """Note that the end of a job is durable."""
        failed = end.state != JobState.SUCCEEDED
        with self._lock:
            self._done += not failed
            self._failed += failed
        with _only_looking():
            if failed:
                self._say("failed", end.fence, f"failed: {end.error_code}: {end.error_message}")
            else:
                self._say("done", end.fence, "done")
        self._names.pop(end.fence.job_id, None)

    def segment_ended(self, segment: Segment, bundle: Bundle | None) -> None:
        """Tell of a segment that leaves its job to somebody else."""
        with _only_looking():
            self._tell_end(segment, bundle)

    def _tell_end(self, segment: Segment, bundle: Bundle | None) -> None:
        match bundle[-1] if bundle else None:
            case EndAttempt(hold=str(hold)):
                self._say("held", segment.fence, f"is held ({hold}); see tally show")
            case EndAttempt(reason=AbortReason.HELD):
                self._say("held", segment.fence, "is paused; tally resume lets it go on")
            case EndAttempt(reason=AbortReason.ERROR):
                self._say("again_later", segment.fence, "raised, and is tried again later")
            case EndAttempt(reason=AbortReason.RELEASED):
                self._say("released", segment.fence, "goes back to the queue")
            case EndJob():
                return
            case Cycle():
                self._say("turned", segment.fence, "begins its next turn")
            case _ if segment.suspended:
                self._say("waits", segment.fence, "waits, without a worker")
            case _:
                self._say("lost", segment.fence, "is left to another attempt")
        self._names.pop(segment.job_id, None)

    def _say(self, kind: str, fence: Fence, words: str) -> None:
        if not self._reporter.says(kind):
            return
        name = self._names.get(fence.job_id, "")
        text = f"job {fence.job_id} ({name}) {words}"
        self._reporter.event(kind, text, job_id=fence.job_id, workflow=name, attempt=fence.attempt)


@contextmanager
def _only_looking() -> Iterator[None]:
    """Log what goes wrong while somebody looks, and let the work go on."""
    try:
        yield
    except Exception:  # noqa: BLE001 (logged with its trace; whoever looks must not end the one who works)
        _log.exception("work: an event could not be told", extra={"action": "work.untold"})


class Watched:
    """A handler whose segments are counted."""

    def __init__(self, handler: Handler, watch: Watch) -> None:
        """Stand before the handler."""
        self._handler = handler
        self._watch = watch
        self.name = handler.name
        self.version = handler.version
        self.is_async = handler.is_async

    def run(self, segment: Segment) -> Bundle | None:
        """Run the segment in this thread."""
        self._watch.begun(segment)
        bundle = self._handler.run(segment)
        self._watch.segment_ended(segment, bundle)
        return bundle

    async def run_async(self, segment: Segment, lane: LoopLane) -> Bundle | None:
        """Run the segment on this event loop."""
        self._watch.begun(segment)
        bundle = await self._handler.run_async(segment, lane)
        self._watch.segment_ended(segment, bundle)
        return bundle


class _Relay(logging.Handler):
    """Turns what the worker logs into events."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(logging.WARNING)
        self._reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless the counts of this worker have said it already."""
        if getattr(record, "action", "") in _SAID_BY_COUNTS:
            return
        try:
            self._reporter.event("warning", self.format(record), action=getattr(record, "action", ""))
        except Exception:  # noqa: BLE001 (as every handler of Python's own does; a log line ends no thread)
            self.handleError(record)


@contextmanager
def told_by_log(reporter: Reporter) -> Iterator[None]:
    """Say what the worker logs, unless the user's module has set up logging of its own."""
    log = logging.getLogger("tallystick")
    relay = _Relay(reporter)
    if not logging.getLogger().handlers and not log.handlers:
        log.addHandler(relay)
    try:
        yield
    finally:
        log.removeHandler(relay)
