"""Several workers, each a fresh interpreter: started together, watched together, stopped together.

Nothing is forked, so no lock, connection or thread of one process can end up in another. No process is
started again in silence: when one dies the others are stopped with grace and the exit code says so, and
whatever keeps services alive on this machine decides what happens next. Jobs of the dead process go on
elsewhere when their leases have run out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Final

from tallystick.cli.commands.work.here import described, fields_of
from tallystick.cli.commands.work.progress import Progress, WorkReporter, summary
from tallystick.cli.commands.work.signals import StopRequests
from tallystick.cli.loading import Loaded
from tallystick.cli.render.output import READER_GONE
from tallystick.worker.options import WorkerOptions

_LOOK_SECONDS: Final = 0.25
_START: Final = "import sys; from tallystick.cli.main import main; sys.exit(main())"
_SAID_HERE: Final = frozenset({"serving", "stopping"})


class WorkerProcess:
    """One process and what it has told so far."""

    def __init__(self, arguments: list[str], reporter: WorkReporter) -> None:
        """Start it; it stops by itself when this process is gone, because its stdin ends."""
        reader, writer = os.pipe()
        # In a session of its own, so that Ctrl-C reaches it once, through us, and not twice.
        self.process = subprocess.Popen(  # noqa: S603 (our own interpreter, with arguments we have parsed)
            [sys.executable, "-P", "-c", _START, *arguments, "--report-to", str(writer)],
            stdin=subprocess.PIPE,
            pass_fds=(writer,),
            start_new_session=True,
        )
        os.close(writer)
        # Whether it has begun to work; before that it claims nothing, and knows no signals.
        self._serves = False
        self.progress = Progress()
        self._reporter = reporter
        self._thread = threading.Thread(target=self._listen, args=(reader,), name="tally-child", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.process.pid

    def stop(self) -> None:
        """Ask it to stop."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()

    def wait(self) -> int:
        """Wait for its end, and for everything it has to say; return its exit code.

        One that was asked to stop before it had begun to work has ended well.
        """
        code = self.process.wait()
        self._thread.join()
        if self.process.stdin:
            self.process.stdin.close()
        return code if self._serves or code != -signal.SIGTERM else 0

    def _listen(self, reader: int) -> None:
        with open(reader, encoding="utf-8") as lines:
            for line in lines:
                told = json.loads(line)
                kind, words = told.pop("event"), told.pop("message")
                self._serves = self._serves or kind == "serving"
                if kind in ("progress", "stopped"):
                    self.progress = Progress(told["running"], told["done"], told["failed"])
                elif kind not in _SAID_HERE:
                    self._reporter.event(kind, words, **{"pid": self.pid, **told})


def serve_with_processes(
    loaded: Loaded,
    options: WorkerOptions,
    processes: int,
    reporter: WorkReporter,
    metrics: tuple[str, int] | None = None,
) -> int:
    """Run that many workers until asked to stop; return 0 when all of them ended well."""
    words, fields = described(loaded, options, processes), fields_of(loaded, options)
    # Nothing of the store stays open here: this process only watches.
    loaded.app.close()
    children: list[WorkerProcess] = []

    def kill_all() -> None:
        for child in children:
            child.kill()

    requests = StopRequests(watch_stdin=False, at_once=kill_all)
    with requests.installed():
        arguments = _arguments(loaded, options, reporter)
        children += [
            WorkerProcess([*arguments, *_series_at(metrics, place)], reporter) for place in range(processes)
        ]
        reporter.event("serving", words, **fields, processes=[child.pid for child in children])
        while not requests.wait(_LOOK_SECONDS):
            reporter.progress(_total(children))
            dead = [child for child in children if child.process.poll() is not None]
            for child in dead:
                reporter.event("died", _obituary(child), pid=child.pid, exit_code=child.process.returncode)
            if dead or reporter.reader_gone:
                break
        else:
            reporter.event(
                "stopping", f"{requests.reason}: stopping {processes} processes", reason=requests.reason
            )
        for child in children:
            child.stop()
        codes = [child.wait() for child in children]
    total = _total(children)
    complete = not any(codes)
    reporter.event("stopped", summary(total), complete=complete, **total._asdict())
    if reporter.reader_gone:
        return READER_GONE
    return 0 if complete and requests.reason else 1


def _arguments(loaded: Loaded, options: WorkerOptions, reporter: WorkReporter) -> list[str]:
    return [
        "work",
        loaded.address,
        "--url",
        loaded.app.url,
        "--queues",
        ",".join(options.queues),
        "--concurrency",
        str(options.concurrency),
        "--lease",
        f"{options.lease_ms}ms",
        "--grace",
        f"{options.grace_ms}ms",
        "--batch-scheduling" if options.batch_scheduling else "--no-batch-scheduling",
        *(["--keep", f"{options.keep_ms}ms"] if options.keep_ms is not None else []),
        *(["--verbose"] if reporter.verbose else []),
    ]


def _series_at(address: tuple[str, int] | None, place: int) -> list[str]:
    """Return the option for the series of one process: each has a port of its own, unless any will do."""
    if address is None:
        return []
    host, port = address
    return ["--metrics", f"{host}:{port and port + place}"]


def _total(children: list[WorkerProcess]) -> Progress:
    return Progress(*(sum(column) for column in zip(*(child.progress for child in children), strict=True)))


def _obituary(child: WorkerProcess) -> str:
    code = child.process.returncode
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return f"process {child.pid} {how}; stopping the others"
