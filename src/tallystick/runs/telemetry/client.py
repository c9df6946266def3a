"""Send telemetry from a thread of its own: a run neither waits for it nor fails with it."""

from __future__ import annotations

import http.client
import logging
import os
import queue
import re
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from tallystick.clock import Clock, SystemClock
from tallystick.errors import BadInput, StorageFailed
from tallystick.runs.log.recorder import Recording
from tallystick.runs.telemetry.buffer import Buffer
from tallystick.runs.telemetry.records import Telling, batches, tellings

QUEUE_MAX: Final = 10_000
TIMEOUT_S: Final = 2.0
# Between the tries of one send; what the last of them cannot tell is kept.
RETRY_PAUSES_S: Final = (1.0, 2.0, 4.0)
SILENCE_S: Final = 5.0
CLOSE_S: Final = 5.0

# What the line of a request may hold.
_PATH: Final = re.compile("[!-~]*")

logger = logging.getLogger("tallystick.runs.telemetry")


class TelemetryClient:
    """A listener of runs; close it, or use `with`, so that the last tellings get out."""

    def __init__(
        self,
        url: str,
        root: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        buffer: Buffer | None = None,
        pause: Callable[[float], bool] | None = None,
    ) -> None:
        """Tell the service at `url`; what it does not take waits in the folder `root`.

        `pause` lets seconds pass between two tries and returns whether there is no time for another one.
        """
        self._sender = Sender(url)
        self._clock = clock or SystemClock()
        self._silent_until = 0.0
        self._closing = threading.Event()
        self._pause = pause or self._closing.wait
        self.buffer = buffer or Buffer(root)
        self._queue: queue.Queue[list[Telling] | None] = queue.Queue(QUEUE_MAX)
        self._thread = threading.Thread(target=self._loop, name="tally-telemetry", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, recording: Recording) -> None:
        """Queue what there is to tell; when even the queue is full, it is dropped and counted."""
        found = list(tellings(recording))
        try:
            self._queue.put_nowait(found)
        except queue.Full:
            self.buffer.dropped += len(found)

    def close(self) -> None:
        """Give the thread a moment to tell or to keep what is queued; there are no pauses any more."""
        self._closing.set()
        try:
            self._queue.put(None, timeout=CLOSE_S)
        except queue.Full:
            logger.warning("telemetry is stuck; what is queued is lost")
            return
        self._thread.join(CLOSE_S)

    def _loop(self) -> None:
        open_ = True
        while open_:
            taken = [self._queue.get()]
            while len(taken) < QUEUE_MAX:
                try:
                    taken.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            open_ = None not in taken
            waiting = [telling for found in taken if found is not None for telling in found]
            if waiting:
                self._tell(waiting)

    def _tell(self, waiting: list[Telling]) -> None:
        """Send, or keep for later; the first success after a failure also sends what was kept."""
        try:
            if self._clock.monotonic() < self._silent_until or not self._sent(waiting):
                self.buffer.keep(waiting)
        except Exception:
            # A refusal, a full disk, a bug of ours: none of it is the run's business.
            logger.warning("telemetry lost %d tellings", len(waiting), exc_info=True)

    def _sent(self, waiting: list[Telling]) -> bool:
        """Send, again after each of the pauses; return whether the service has taken everything."""
        for pause_s in (*RETRY_PAUSES_S, None):
            try:
                self.buffer.empty(self._sender.send)
                self._sender.send(waiting)
            except (OSError, http.client.HTTPException) as error:
                if pause_s is None or self._pause(pause_s):
                    logger.info("telemetry is down (%s); keeping %d tellings", error, len(waiting))
                    break
            else:
                return True
        self._silent_until = self._clock.monotonic() + SILENCE_S
        return False


class Sender:
    """One address of a service."""

    def __init__(self, url: str) -> None:
        """Check the address; nothing is sent yet."""
        refusal = BadInput(f"{url[:200]!r} is not the address of a telemetry service; say http://host:port")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or 80
            # As the socket will: a name that cannot be looked up is no service that is down for a while.
            host.encode("idna")
        except ValueError as error:
            raise refusal from error
        if parts.scheme != "http" or not host or not _PATH.fullmatch(parts.path):
            raise refusal
        self._host, self._port = host, port
        self._path = f"{parts.path.rstrip('/')}/api/v1/runs/batch"

    def send(self, waiting: Sequence[Telling]) -> None:
        """Tell everything in order; raise when the service is not there or not well.

        What it refuses for its content is logged and not sent again.
        """
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            for batch in batches(waiting):
                body = msgspec.json.encode(batch)
                connection.request("POST", self._path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                if answer.status >= 500:
                    raise http.client.HTTPException(f"{answer.status} {answer.reason}")
                if answer.status >= 400:
                    logger.warning("telemetry refused %d tellings: %d", len(waiting), answer.status)
        finally:
            connection.close()


def flush_buffer(url: str, root: str | os.PathLike[str]) -> int:
    """Send what waits in a folder and return how many tellings that were."""
    try:
        return Buffer(root).empty(Sender(url).send)
    except (OSError, http.client.HTTPException) as error:
        raise StorageFailed(
            f"the telemetry service at {url} does not answer: {error}", call="send"
        ) from error
