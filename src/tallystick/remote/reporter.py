"""Reports of a remote worker on their way to the API.

What gathers while one request is under way leaves with the next; a RESULT waits for nothing else. A report is
said until it is answered for good. An ACK that its RESULT has overtaken is not sent: the RESULT says it too.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from tallystick.core.limits import CALLBACK_BYTES_MAX, REPORTS_MAX
from tallystick.remote.given import GivenDirective
from tallystick.remote.line import LATER, Line, LineBroken

REPEAT_SECONDS_MIN: Final = 0.1
REPEAT_SECONDS_MAX: Final = 10.0
ACK_SECONDS: Final = 0.02
"""How long an ACK that is alone waits for its RESULT."""
# One request holds as many as this, and one more.
_BYTES_AT_ONCE: Final = 2 * CALLBACK_BYTES_MAX
_OK: Final = 200
# There is no such route, or the key does not open it: then each report goes with its token alone.
_NOT_THERE: Final = frozenset({401, 403, 404, 405})

_log = logging.getLogger("tallystick.remote")
_encode: Final = msgspec.json.Encoder().encode
T = TypeVar("T")


class Reply(msgspec.Struct):
    """The answer to a report; that of a callback has a word for its status, so it is not read from there."""

    cancelling: bool | None = None
    lease_ms: int | None = None
    token: str | None = None
    code: str | None = None
    detail: str | None = None


class _Enveloped(Reply):
    status: int = 0


class _AnswersForm(msgspec.Struct):
    answers: list[_Enveloped]


class WorkerReport:
    """One report on a directive; `arrive` gets the status and the answer, once it is answered for good."""

    __slots__ = ("arrive", "body", "directive", "kind")

    def __init__(
        self, kind: str, directive: GivenDirective, body: bytes, arrive: Callable[[int, Reply], None]
    ) -> None:
        """Remember what to report, and what to call with the outcome."""
        self.kind = kind
        self.directive = directive
        self.body = body
        self.arrive = arrive

    @property
    def is_needed(self) -> bool:
        """Tell whether it still says something: a RESULT implies the ACK and every heartbeat."""
        return self.kind == "result" or not self.directive.reported


class Reporter:
    """Takes reports to the API, many at a time, in a thread of its own."""

    def __init__(self, line: Line, key: str, stopping: threading.Event) -> None:
        """Remember the way; once `stopping` is set, an API that is away is given up after a few tries."""
        self._line = line
        self._key = key
        self._stopping = stopping
        self._queue: deque[WorkerReport] = deque()
        self._changed = threading.Condition()
        self._closing = False
        # Whether the API takes one report at a time: it is an older one, or the key was revoked.
        self._one_by_one = False
        # Whether the last answer could not be read, and that is told.
        self._unreadable = False
        self._thread = threading.Thread(target=self._run, name="remote-reports", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Return when everything is answered, or given up."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self._line.close()

    def put(self, reports: Iterable[WorkerReport]) -> None:
        """Let reports leave with the next request."""
        with self._changed:
            self._queue.extend(reports)
            self._changed.notify()

    def _run(self) -> None:
        pause, left = REPEAT_SECONDS_MIN, list[WorkerReport]()
        while batch := self._gathered(left):
            left = self._send(batch)
            if not left:
                pause = REPEAT_SECONDS_MIN
                continue
            if self._stopping.wait(pause) and pause >= REPEAT_SECONDS_MAX:
                for report in left:
                    report.arrive(0, Reply())
                left = []
            pause = min(2 * pause, REPEAT_SECONDS_MAX)

    def _gathered(self, left: list[WorkerReport]) -> list[WorkerReport]:
        """Wait for something to say; return what was not answered, and what has come since."""
        batch = [report for report in left if report.is_needed]
        with self._changed:
            while not batch and not self._closing:
                self._changed.wait_for(lambda: self._queue or self._closing)
                # Work that ends at once needs no ACK.
                self._changed.wait_for(self._has_more_than_acks, ACK_SECONDS)
                self._take(batch)
            self._take(batch)
        return batch

    def _has_more_than_acks(self) -> bool:
        return self._closing or any(report.kind != "ack" for report in self._queue)

    def _take(self, batch: list[WorkerReport]) -> None:
        """Add what is queued to a batch, as much as one request holds."""
        size = sum(len(report.body) for report in batch)
        while self._queue and len(batch) < REPORTS_MAX and size < _BYTES_AT_ONCE:
            report = self._queue.popleft()
            if report.is_needed:
                batch.append(report)
                size += len(report.body)

    def _send(self, batch: list[WorkerReport]) -> list[WorkerReport]:
        """Say reports and return those that are to be said again."""
        if len(batch) == 1 or self._one_by_one:
            return [report for report in batch if not self._sent_alone(report)]
        said = [
            {"kind": report.kind, "token": report.directive.token, "report": msgspec.Raw(report.body)}
            for report in batch
        ]
        try:
            answer = self._line.call("POST", "/v1/callbacks", self._key, _encode({"reports": said}))
        except LineBroken as broken:
            self._warn(batch, str(broken))
            return batch
        if answer.status != _OK:
            if not answer.is_final:
                self._warn(batch, f"status {answer.status}")
                return batch
            self._one_by_one = answer.status in _NOT_THERE
            return [report for report in batch if not self._sent_alone(report)]
        answers = self._read(answer.body, _AnswersForm, batch)
        return batch if answers is None else self._arrived(batch, answers.answers)

    def _arrived(self, batch: list[WorkerReport], answers: list[_Enveloped]) -> list[WorkerReport]:
        """Hand on what is answered for good, and return the rest."""
        if len(answers) != len(batch):
            self._warn(batch, f"{len(answers)} answers to {len(batch)} reports")
            return batch
        left = [report for report, told in zip(batch, answers, strict=True) if told.status in LATER]
        if left:
            self._warn(left, "the store cannot take it now")
        for report, told in zip(batch, answers, strict=True):
            if told.status not in LATER:
                report.arrive(told.status, told)
        return left

    def _sent_alone(self, report: WorkerReport) -> bool:
        try:
            path, token = f"/v1/callbacks/{report.kind}", report.directive.token
            answer = self._line.call("POST", path, token, report.body)
        except LineBroken as broken:
            self._warn([report], str(broken))
            return False
        if not answer.is_final:
            self._warn([report], f"status {answer.status}")
            return False
        told = self._read(answer.body or b"{}", Reply, [report], tell=answer.status == _OK)
        if told is None and answer.status == _OK:
            return False
        report.arrive(
            answer.status,
            told or Reply(code="REFUSED", detail=f"the API answered with {answer.status}"),
        )
        return True

    def _read(self, body: bytes, kind: type[T], batch: list[WorkerReport], *, tell: bool = True) -> T | None:
        """Return an answer; None for one that cannot be read, which is told once until one can be."""
        try:
            read = msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            if tell and not self._unreadable:
                self._warn(batch, f"the answer cannot be read, {error}")
            self._unreadable = self._unreadable or tell
            return None
        self._unreadable = False
        return read

    def _warn(self, reports: list[WorkerReport], why: str) -> None:
        what = ", ".join(f"{each.kind} of {each.directive.outbox_id}" for each in reports[:3])
        _log.warning("%s is not answered: %s", what, why, extra={"action": "remote.repeat"})
