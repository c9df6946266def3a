"""A remote worker: asks for directives, calls handlers, reports until it is answered, acts once for each."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from tallystick.clock import SystemClock
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, clip_text
from tallystick.core.remote.wire import Ack, Directive, RemoteError, Result
from tallystick.errors import BadInput, DuplicateHandler, NoRetry, NotAllowed, NotKnown
from tallystick.ids import SystemIds
from tallystick.remote.given import Done, GivenDirective, RemoteFailed
from tallystick.remote.line import ANSWER_SECONDS, Answered, Line, LineBroken

Handler = Callable[[GivenDirective], Any]
F = TypeVar("F", bound=Handler)

WAIT_SECONDS: Final = 20
REPEAT_SECONDS_MIN: Final = 0.1
REPEAT_SECONDS_MAX: Final = 10.0
BEATS_PER_LEASE: Final = 3
BEAT_SECONDS_MAX: Final = 60.0
# How many directives that are done a worker remembers, so that a copy of one is not done again.
REMEMBERED_MAX: Final = 10_000

_log = logging.getLogger("tallystick.remote")
_encode: Final = msgspec.json.Encoder().encode


class _Given(msgspec.Struct):
    directives: list[Directive]


class _Heard(msgspec.Struct):
    status: str = ""
    cancelling: bool = False
    lease_ms: int | None = None
    token: str | None = None


class _Problem(msgspec.Struct):
    code: str = ""
    detail: str = ""


class RemoteWorker:
    """Works on the directives of some services, for an API at an address."""

    def __init__(
        self, url: str, key: str, *, services: Sequence[str], name: str | None = None, concurrency: int = 4
    ) -> None:
        """Remember what to ask for; a worker that has a name is given again what it did not acknowledge."""
        if isinstance(services, str) or not services:
            raise BadInput("services are a list, and a worker has at least one: services=['ocr']")
        self._url = url
        self._key = key
        self._services = tuple(services)
        self._clock = SystemClock()
        self.name = name or f"w{SystemIds().token()[:12]}"
        self._handlers: dict[str, Handler] = {}
        self._slots = threading.BoundedSemaphore(concurrency)
        self._concurrency = concurrency
        self._stopping = threading.Event()
        self._active: dict[str, GivenDirective] = {}
        self._done: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self._asking = Line(url, WAIT_SECONDS + ANSWER_SECONDS)
        self._lines = threading.local()
        # Connections that no directive needs just now.
        self._idle: list[Line] = []
        self._loop: asyncio.AbstractEventLoop | None = None

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
        loop = None
        if any(inspect.iscoroutinefunction(handler) for handler in self._handlers.values()):
            loop = self._loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="remote-loop", daemon=True).start()
        beats = threading.Thread(target=self._beat, name="remote-heartbeat", daemon=True)
        beats.start()
        try:
            while not self._stopping.is_set():
                self._ask()
        finally:
            self._stopping.set()
            for _ in range(self._concurrency):
                self._slots.acquire()
            beats.join()
            for line in (self._asking, *self._idle):
                line.close()
            if loop is not None:
                loop.call_soon_threadsafe(loop.stop)

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

    def _ask(self) -> None:
        """Wait for a free slot, ask for as much as can be done, and begin it."""
        if not self._slots.acquire(timeout=WAIT_SECONDS):
            return
        self._slots.release()
        with self._lock:
            free = max(1, self._concurrency - len(self._active))
        asked = [("worker", self.name), ("wait", WAIT_SECONDS), ("max", free)]
        query = urlencode([*(("service", service) for service in self._services), *asked])
        given = self._given(query)
        new = [directive for directive in given if self._is_new(directive)]
        for directive in new:
            self._slots.acquire()
            threading.Thread(target=self._work, args=(directive,), name="remote-work", daemon=True).start()
        if given and not new:
            # Copies of what is being acknowledged just now.
            self._stopping.wait(REPEAT_SECONDS_MIN)

    def _given(self, query: str) -> list[GivenDirective]:
        try:
            answer = self._asking.call("GET", f"/v1/directives?{query}", self._key)
        except LineBroken as broken:
            if not self._stopping.is_set():
                _log.warning("cannot ask for work: %s", broken, extra={"action": "remote.unheard"})
            self._stopping.wait(REPEAT_SECONDS_MIN * 10)
            return []
        if answer.status in (401, 403):
            said = _problem(answer)
            raise (NotKnown if answer.status == 401 else NotAllowed)(said.detail)
        if answer.status != 200:
            _log.warning(
                "asking for work was answered with %s", answer.status, extra={"action": "remote.refused"}
            )
            self._stopping.wait(REPEAT_SECONDS_MIN * 10)
            return []
        found = msgspec.json.decode(answer.body, type=_Given)
        return [GivenDirective(form) for form in found.directives]

    def _is_new(self, directive: GivenDirective) -> bool:
        with self._lock:
            if directive.outbox_id in self._active or directive.outbox_id in self._done:
                return False
            self._active[directive.outbox_id] = directive
            return True

    def _work(self, directive: GivenDirective) -> None:
        with self._lock:
            self._lines.line = line = self._idle.pop() if self._idle else Line(self._url)
        try:
            if self._report("ack", directive, _encode(Ack(*directive.fence))):
                self._tell(directive, self._called(directive))
        except Exception:  # noqa: BLE001 (a slot goes on with the next directive; the lease of this one ends)
            _log.exception("%s: nothing could be reported", directive, extra={"action": "remote.failed"})
        finally:
            with self._lock:
                self._idle.append(line)
                del self._active[directive.outbox_id]
                self._done[directive.outbox_id] = None
                while len(self._done) > REMEMBERED_MAX:
                    self._done.popitem(last=False)
            self._slots.release()

    def _called(self, directive: GivenDirective) -> Result:
        """Call the handler and return what is to be reported."""
        fence = directive.fence
        try:
            given = self._run_handler(directive)
        except Exception as error:  # noqa: BLE001 (whatever a handler raises is reported)
            return _failure(directive, error)
        done = given if isinstance(given, Done) else Done(given)
        return Result(
            *fence,
            status="SUCCEEDED",
            output_ref=done.output_ref,
            workspace_ref=done.workspace_ref,
            artifact_refs=None if done.artifact_refs is None else list(done.artifact_refs),
            value=done.value,
        )

    def _run_handler(self, directive: GivenDirective) -> object:
        handler = self._handlers[directive.form.service or ""]
        made = handler(directive)
        if not inspect.isawaitable(made):
            return made
        assert self._loop is not None, "there is a loop when a handler is async"
        return asyncio.run_coroutine_threadsafe(_awaited(made), self._loop).result()

    def _tell(self, directive: GivenDirective, result: Result) -> None:
        """Report how it ended; what cannot be taken as it is becomes a failure that says so."""
        try:
            body = _encode(result)
        except (TypeError, ValueError) as error:
            body = _encode(_failure(directive, RemoteFailed("RESULT_NOT_JSON", str(error))))
        refused = self._repeated("result", directive, body)
        if refused is not None and refused.status in (400, 413, 422):
            said = _problem(refused)
            self._repeated(
                "result", directive, _encode(_failure(directive, RemoteFailed(said.code, said.detail)))
            )

    def _report(self, what: str, directive: GivenDirective, body: bytes) -> bool:
        """Report until answered, and tell whether the work is wanted."""
        answer = self._repeated(what, directive, body)
        if answer is None or answer.status != 200:
            directive.cancel()
            return False
        heard = msgspec.json.decode(answer.body, type=_Heard)
        directive.token = heard.token or directive.token
        directive.lease_ms = heard.lease_ms
        if heard.cancelling:
            directive.cancel()
        return True

    def _repeated(self, what: str, directive: GivenDirective, body: bytes) -> Answered | None:
        """Say something until it is answered for good; None if the worker is to stop and nothing helps."""
        pause = REPEAT_SECONDS_MIN
        while True:
            try:
                answer = self._line.call("POST", f"/v1/callbacks/{what}", directive.token, body)
                if answer.is_final:
                    return answer
                why = f"status {answer.status}"
            except LineBroken as broken:
                why = str(broken)
            _log.warning(
                "%s: %s is not answered: %s", directive, what, why, extra={"action": "remote.repeat"}
            )
            if self._stopping.wait(pause) and pause >= REPEAT_SECONDS_MAX:
                return None
            pause = min(2 * pause, REPEAT_SECONDS_MAX)

    @property
    def _line(self) -> Line:
        """Return the connection of this thread."""
        line: Line | None = getattr(self._lines, "line", None)
        if line is None:
            line = self._lines.line = Line(self._url)
        return line

    def _beat(self) -> None:
        """Renew leases, each when a third of it is over, for as long as anything is under way."""
        due: dict[str, float] = {}
        while True:
            with self._lock:
                active = dict(self._active)
            if not active and self._stopping.is_set():
                self._line.close()
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
                    self._report_beat(directive)
            threading.Event().wait(REPEAT_SECONDS_MIN)

    def _report_beat(self, directive: GivenDirective) -> None:
        body = _encode(Ack(*directive.fence))
        try:
            answer = self._line.call("POST", "/v1/callbacks/heartbeat", directive.token, body)
        except LineBroken:
            return  # the next beat is soon enough: a lease has room for two that are lost
        if answer.status == 200:
            heard = msgspec.json.decode(answer.body, type=_Heard)
            directive.token = heard.token or directive.token
            directive.lease_ms = heard.lease_ms or directive.lease_ms
            if heard.cancelling:
                directive.cancel()
        elif answer.is_final:
            directive.cancel()


def _beat_seconds(directive: GivenDirective) -> float | None:
    """Return how often the lease of a directive is renewed; None before it is acknowledged."""
    if directive.lease_ms is None:
        return None
    return min(directive.lease_ms / 1000 / BEATS_PER_LEASE, BEAT_SECONDS_MAX)


def _failure(directive: GivenDirective, error: BaseException) -> Result:
    retryable, details = not isinstance(error, NoRetry), None
    code, message = type(error).__name__, str(error)
    if isinstance(error, RemoteFailed):
        code, message, retryable, details = error.code, error.message, error.retryable, error.details
    return Result(
        *directive.fence,
        status="FAILED",
        failure_class="RETRYABLE" if retryable else "NON_RETRYABLE",
        error=RemoteError(code or "ERROR", clip_text(message, ERROR_TEXT_BYTES_MAX), details),
    )


def _problem(answer: Answered) -> _Problem:
    try:
        return msgspec.json.decode(answer.body, type=_Problem)
    except msgspec.DecodeError:
        return _Problem("REFUSED", f"the API answered with {answer.status}")


async def _awaited(made: Any) -> object:  # noqa: ANN401 (whatever an async handler gives)
    return await made
