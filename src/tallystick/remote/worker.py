"""A remote worker: asks for directives, calls handlers, reports until it is answered, acts once for each."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from tallystick import crash
from tallystick.clock import SystemClock
from tallystick.core.limits import (
    CALLBACK_BYTES_MAX,
    DIRECTIVES_MAX,
    ERROR_TEXT_BYTES_MAX,
    check_size,
    clip_text,
)
from tallystick.core.remote.refs import told_refs
from tallystick.core.remote.wire import Ack, RemoteError, ResultReport, read_directive
from tallystick.errors import BadInput, DuplicateHandler, NoRetry, NotAllowed, NotKnown, PayloadTooLarge
from tallystick.ids import SystemIds
from tallystick.remote.given import Done, GivenDirective, RemoteFailed
from tallystick.remote.line import ANSWER_SECONDS, Line, LineBroken
from tallystick.remote.reporter import REPEAT_SECONDS_MIN, Reply, Reporter, WorkerReport

if TYPE_CHECKING:
    import ssl

Handler = Callable[[GivenDirective], Any]
F = TypeVar("F", bound=Handler)

WAIT_SECONDS: Final = 20
BEATS_PER_LEASE: Final = 3
BEAT_SECONDS_MAX: Final = 60.0
# How many directives that are done a worker remembers, so that a copy of one is not done again.
REMEMBERED_MAX: Final = 10_000
# How long a slot that became free waits for others, so that one question asks for all of them.
GATHER_SECONDS: Final = 0.005
# How many times its slots a worker may hold of what is done and not reported yet.
_UNREPORTED: Final = 4
_REFUSED: Final = (400, 413, 422)
_OK: Final = 200

GIVEN: Final = crash.declare("remote.given", "a remote worker has directives and has begun none of them")
WORKED: Final = crash.declare("remote.worked", "a directive is done and that is not reported")
REPORTED: Final = crash.declare("remote.reported", "a RESULT is answered and the worker has not noted it")

_log = logging.getLogger("tallystick.remote")
_encode: Final = msgspec.json.Encoder().encode


class _Given(msgspec.Struct):
    directives: list[msgspec.Raw]
    more: bool = False


class RemoteWorker:
    """Works on the directives of some services, for an API at an address."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        services: Sequence[str],
        name: str | None = None,
        concurrency: int = 4,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        """Remember what to ask for; a worker that has a name is given again what it did not acknowledge.

        `concurrency` is how many directives it does at once. An API over https is believed by `certificates`,
        or by those of the system.
        """
        if isinstance(services, str) or not services:
            raise BadInput("services are a list, and a worker has at least one: services=['ocr']")
        if concurrency < 1:
            raise BadInput("a worker does one directive at a time at least: concurrency=1")
        if not key or any(not "!" <= letter <= "~" for letter in key):
            raise BadInput("this is no key: it is empty, or has a space, a line break or other such letters")
        self._key = key
        self._services = tuple(services)
        self._clock = SystemClock()
        self.name = name or f"w{SystemIds().token()[:12]}"
        self._handlers: dict[str, Handler] = {}
        self._concurrency = concurrency
        self._stopping = threading.Event()
        # Everything that is not reported, by its outbox_id; some of it is at work in a slot.
        self._active: dict[str, GivenDirective] = {}
        self._at_work = 0
        self._done: OrderedDict[str, None] = OrderedDict()
        self._changed = threading.Condition()
        self._asking = Line(url, WAIT_SECONDS + ANSWER_SECONDS, certificates)
        # Whether an answer to us may have been lost: then we are to be given again what it held.
        self._again = True
        # Whether the last answer could not be read, and that is told.
        self._unreadable = False
        self._reporter = Reporter(Line(url, certificates=certificates), key, self._stopping)
        self._todo: SimpleQueue[GivenDirective | None] = SimpleQueue()
        self._slots: list[threading.Thread] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks_thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, service: str) -> Callable[[F], F]:
        """Declare the function, sync or async, that does the directives of a service.

        What it returns is the value of the step, or `Done` with references. What it raises is a failure that
        is tried again, unless it is `RemoteFailed` or `Fatal`.
        """
        if service not in self._services:
            raise BadInput(f"this worker does not ask for {service}; it asks for {', '.join(self._services)}")
        if service in self._handlers:
            raise DuplicateHandler(f"there is a handler for {service} already", name=service)

        def decorate(function: F) -> F:
            self._handlers[service] = function
            return function

        return decorate

    def run(self) -> None:
        """Work until `stop` is called; what is under way then is finished and reported first."""
        missing = [service for service in self._services if service not in self._handlers]
        if missing:
            raise BadInput(f"no handler for {', '.join(missing)}: declare one with @worker.handle")
        if any(inspect.iscoroutinefunction(handler) for handler in self._handlers.values()):
            self._loop = asyncio.new_event_loop()
            self._tasks_thread = threading.Thread(
                target=self._loop.run_forever, name="remote-loop", daemon=True
            )
            self._tasks_thread.start()
        beats = threading.Thread(target=self._beat, name="remote-heartbeat", daemon=True)
        beats.start()
        self._reporter.start()
        try:
            while not self._stopping.is_set():
                self._ask()
        finally:
            self._stopping.set()
            with self._changed:
                self._changed.wait_for(lambda: not self._active)
            for _ in self._slots:
                self._todo.put(None)
            beats.join()
            self._reporter.close()
            self._asking.close()
            if self._loop is not None and self._tasks_thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._tasks_thread.join()
                self._loop.close()

    async def run_aio(self) -> None:
        """Do the same without blocking the event loop; cancelling it stops the worker."""
        working = asyncio.create_task(asyncio.to_thread(self.run))
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError:
            self.stop()
            await working
            raise

    def stop(self) -> None:
        """Ask for nothing more; `run` returns when everything under way is reported."""
        self._stopping.set()
        self._asking.cut()
        with self._changed:
            self._changed.notify_all()

    def _ask(self) -> None:
        """Wait for a free slot, ask for as much as can be done, and begin it."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_room() or self._stopping.is_set())
            # Work that ends at once would otherwise be asked for one by one.
            self._changed.wait_for(lambda: not self._at_work or self._stopping.is_set(), GATHER_SECONDS)
            free = min(self._concurrency - self._at_work, DIRECTIVES_MAX)
        if not self._stopping.is_set():
            given = self._given(free)
            if given and not self._begin(given):
                # Copies of what is being acknowledged just now.
                self._stopping.wait(REPEAT_SECONDS_MIN)

    def _has_room(self) -> bool:
        waiting = len(self._active) - self._at_work
        return self._at_work < self._concurrency and waiting < _UNREPORTED * self._concurrency

    def _given(self, most: int) -> list[GivenDirective]:
        """Ask, and wait for an answer; without one, the next question is for what it may have held too."""
        again, self._again = str(self._again).lower(), True
        asked = [("worker", self.name), ("wait", WAIT_SECONDS), ("max", most), ("again", again)]
        query = urlencode([*(("service", service) for service in self._services), *asked])
        try:
            answer = self._asking.call("GET", f"/v1/directives?{query}", self._key)
        except LineBroken as broken:
            if not self._stopping.is_set():
                _log.warning("cannot ask for work: %s", broken, extra={"action": "remote.unheard"})
            self._stopping.wait(REPEAT_SECONDS_MIN * 10)
            return []
        if answer.status in (401, 403):
            raise (NotKnown if answer.status == 401 else NotAllowed)(_detail(answer.body))
        if answer.status != _OK:
            about = {"action": "remote.refused"}
            _log.warning("asking for work was answered with %s", answer.status, extra=about)
            self._stopping.wait(REPEAT_SECONDS_MIN * 10)
            return []
        return self._read(answer.body)

    def _read(self, body: bytes) -> list[GivenDirective]:
        """Return what an answer gives; one that cannot be read gives nothing, as if there were none."""
        try:
            found = msgspec.json.decode(body, type=_Given)
            given = [GivenDirective(read_directive(each)) for each in found.directives]
        except msgspec.DecodeError as error:
            if not self._unreadable:
                about = {"action": "remote.unreadable"}
                _log.warning("the answer to a question for work cannot be read: %s", error, extra=about)
            self._unreadable = True
            self._stopping.wait(REPEAT_SECONDS_MIN * 10)
            return []
        self._unreadable, self._again = False, found.more
        return given

    def _begin(self, given: Sequence[GivenDirective]) -> list[GivenDirective]:
        """Begin what is new and return it; its ACK goes out beside the work: the delivery made it ours."""
        crash.point(GIVEN)
        with self._changed:
            new = [each for each in given if not self._knows(each.outbox_id)]
            self._active.update((each.outbox_id, each) for each in new)
            self._at_work += len(new)
        tasks = [each for each in new if inspect.iscoroutinefunction(self._handler(each))]
        if tasks and self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin_tasks, tasks)
        plain = [each for each in new if each not in tasks]
        for _ in range(min(len(plain), self._concurrency - len(self._slots))):
            slot = threading.Thread(target=self._work, name="remote-work", daemon=True)
            slot.start()
            self._slots.append(slot)
        for directive in plain:
            self._todo.put(directive)
        self._reporter.put([self._sign("ack", each) for each in new])
        return new

    def _knows(self, outbox_id: str) -> bool:
        return outbox_id in self._active or outbox_id in self._done

    def _handler(self, directive: GivenDirective) -> Handler:
        return self._handlers[directive.form.service or ""]

    def _begin_tasks(self, directives: Sequence[GivenDirective]) -> None:
        for directive in directives:
            task = asyncio.get_running_loop().create_task(self._work_aio(directive))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work_aio(self, directive: GivenDirective) -> None:
        try:
            result = _success(directive, await self._handler(directive)(directive))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (whatever it raises is reported)
            result = _failure(directive, error)
        self._report(directive, result)

    def _work(self) -> None:
        """Do directives, one after the other, until there is to be no more."""
        while (directive := self._todo.get()) is not None:
            try:
                result = _success(directive, self._handler(directive)(directive))
            except BaseException as error:  # noqa: BLE001 (whatever a handler raises is reported)
                result = _failure(directive, error)
            self._report(directive, result)

    def _report(self, directive: GivenDirective, result: ResultReport) -> None:
        """Report how it ended; what cannot be sent as it is becomes a failure that says so."""
        crash.point(WORKED)
        try:
            body = _encode(told_refs(result))
            check_size("RESULT", len(body), CALLBACK_BYTES_MAX)
        except PayloadTooLarge as error:
            body = _encode(_failure(directive, RemoteFailed(error.code, error.message)))
        except (TypeError, ValueError) as error:
            body = _encode(_failure(directive, RemoteFailed("RESULT_NOT_JSON", str(error))))

        def arrive(status: int, told: Reply) -> None:
            if status in _REFUSED:
                why = RemoteFailed(told.code or "REFUSED", told.detail or f"the API answered with {status}")
                refused = _encode(_failure(directive, why))
                self._reporter.put(
                    [WorkerReport("result", directive, refused, lambda *_: self._forget(directive))]
                )
            else:
                self._forget(directive)

        directive.reported = True
        self._reporter.put([WorkerReport("result", directive, body, arrive)])
        with self._changed:
            self._at_work -= 1
            self._changed.notify()

    def _forget(self, directive: GivenDirective) -> None:
        """Note that a directive is reported, and remember that it was."""
        crash.point(REPORTED)
        with self._changed:
            del self._active[directive.outbox_id]
            self._done[directive.outbox_id] = None
            while len(self._done) > REMEMBERED_MAX:
                self._done.popitem(last=False)
            self._changed.notify()

    def _sign(self, kind: str, directive: GivenDirective) -> WorkerReport:
        """Return an ACK or a heartbeat; its answer says whether to go on, and for how long."""

        def arrive(status: int, told: Reply) -> None:
            if status != _OK:
                directive.cancel()
                return
            directive.token = told.token or directive.token
            directive.lease_ms = told.lease_ms or directive.lease_ms
            if told.cancelling:
                directive.cancel()

        return WorkerReport(kind, directive, _encode(Ack(*directive.fence)), arrive)

    def _beat(self) -> None:
        """Renew leases, each when a third of it is over, for as long as anything is under way."""
        due: dict[str, float] = {}
        while True:
            with self._changed:
                active = dict(self._active)
            if not active and self._stopping.is_set():
                return
            now = self._clock.monotonic()
            for outbox_id in due.keys() - active.keys():
                del due[outbox_id]
            for outbox_id, directive in active.items():
                every = _beat_seconds(directive)
                if every is None or directive.cancelled:
                    continue
                if due.setdefault(outbox_id, now + every) <= now:
                    due[outbox_id] = now + every
                    self._reporter.put([self._sign("heartbeat", directive)])
            threading.Event().wait(REPEAT_SECONDS_MIN)


def _detail(body: bytes) -> str:
    """Return why a question was refused, if that was said by the API and not by something before it."""
    try:
        return msgspec.json.decode(body, type=Reply).detail or ""
    except msgspec.DecodeError:
        return ""


def _beat_seconds(directive: GivenDirective) -> float | None:
    """Return how often the lease of a directive is renewed; None before it is acknowledged."""
    if directive.lease_ms is None:
        return None
    return min(directive.lease_ms / 1000 / BEATS_PER_LEASE, BEAT_SECONDS_MAX)


def _success(directive: GivenDirective, given: object) -> ResultReport:
    done = given if isinstance(given, Done) else Done(given)
    return ResultReport(
        *directive.fence,
        status="SUCCEEDED",
        output_ref=done.output_ref,
        workspace_ref=done.workspace_ref,
        artifact_refs=None if done.artifact_refs is None else list(done.artifact_refs),
        value=done.value,
    )


def _failure(directive: GivenDirective, error: BaseException) -> ResultReport:
    retryable, details = not isinstance(error, NoRetry), None
    code, message = type(error).__name__, str(error)
    if isinstance(error, RemoteFailed):
        code, message, retryable, details = error.code, error.message, error.retryable, error.details
    return ResultReport(
        *directive.fence,
        status="FAILED",
        failure_class="RETRYABLE" if retryable else "NON_RETRYABLE",
        error=RemoteError(code or "ERROR", clip_text(message, ERROR_TEXT_BYTES_MAX), details),
    )
