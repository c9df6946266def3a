"""`make demo-remote`: remote workers over a broker, one killed at work, a late report, and the books.

The service has no access to the database. It gets directives from a real NATS server and reports over it. Its
first worker is killed with kill -9 while it works; what it held is done by the other one, and a report of the
dead one that comes afterwards is refused. Only the waiting is cut short: the clock is moved on.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import nats
from nats.js.api import StreamConfig

from demo.remote_worker import STREAM, report
from tallystick import Nats, RemoteStep, Tally
from tallystick.cli.render.output import Ink, show, tell
from tallystick.clock import SystemClock
from tallystick.engine.audit import audit
from tallystick.store.api import Protocols

PAGES = 12
WORK_SECONDS = 0.4
PATIENCE_SECONDS = 30.0
ink = Ink.for_stream(sys.stdout)


class MovedClock(SystemClock):
    """The clock of the machine, and what was skipped."""

    def __init__(self) -> None:
        """Begin at the time of the machine."""
        self._skipped_ms = 0

    def skip(self, ms: int) -> None:
        """Move on, as if so much time had passed."""
        self._skipped_ms += ms

    def wall_ms(self) -> int:
        """Return the moved wall clock."""
        return super().wall_ms() + self._skipped_ms

    def boot_ms(self) -> int:
        """Return the moved boot clock."""
        return super().boot_ms() + self._skipped_ms

    def monotonic(self) -> float:
        """Return the moved monotonic clock."""
        return super().monotonic() + self._skipped_ms / 1000


class Crew:
    """The remote workers, and what they say: who works on which attempt of which job."""

    def __init__(self, url: str) -> None:
        """Begin with nobody."""
        self._url = url
        self._processes: list[subprocess.Popen[str]] = []
        self.said: list[tuple[str, str, int, int]] = []

    def hire(self, name: str, seconds: float) -> int:
        """Start a worker and return its process."""
        command = [sys.executable, "-m", "demo.remote_worker", self._url, name, str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._processes.append(process)
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return process.pid

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            name, job_id, attempt, pid = line.split()
            self.said.append((name, job_id, int(attempt), int(pid)))

    def dismiss(self) -> None:
        """End all of them."""
        for process in self._processes:
            process.kill()
            process.wait()


def main() -> int:
    """Play; return 1 when the books do not balance."""
    folder = Path(tempfile.mkdtemp(prefix="tallystick-demo-"))
    begun = time.monotonic()
    try:
        with ExitStack() as stack:
            balanced = _play(folder, stack)
    finally:
        shutil.rmtree(folder)
    show(f"  {time.monotonic() - begun:.0f} seconds")
    return 0 if balanced else 1


def _play(folder: Path, stack: ExitStack) -> bool:
    url = stack.enter_context(_broker(folder))
    asyncio.run(_keep_what_was_read(url))
    clock = MovedClock()
    app = Tally(f"sqlite:///{folder / 'scans.db'}", clock=clock)
    stack.callback(app.close)
    app.service("reader", via=Nats(url, stream=STREAM))
    app.protocol("read", request_types=["read"], steps=[RemoteStep("read", service="reader", lease="2m")])

    _title(f"{PAGES} pages are submitted; no relay runs, so the outbox keeps their directives")
    jobs = [app.command(_command(page)) for page in range(PAGES)]
    _outbox(app, [job.id for job in jobs])

    _title("a worker publishes them to NATS; two remote workers read, without any access to the database")
    stack.enter_context(app.worker())
    crew = Crew(url)
    stack.callback(crew.dismiss)
    doomed = crew.hire("ada", 3600)
    _wait(lambda: crew.said, "the first remote worker")
    _name, held, _attempt, _pid = crew.said[0]
    crew.hire("bob", WORK_SECONDS)
    _wait(lambda: _states(jobs)["SUCCEEDED"] == PAGES - 1, "all pages but one")
    _outbox(app, [job.id for job in jobs])

    _title("kill -9 of ada, who holds a page; two minutes of lease and one of pause are skipped")
    os.kill(doomed, signal.SIGKILL)
    clock.skip(121_000)
    _wait(lambda: _step(app, held)[0] == "FAILED_RETRY", "the end of her lease")
    clock.skip(61_000)
    _wait(lambda: _states(jobs)["SUCCEEDED"] == PAGES, "the second attempt")
    show(f"    attempt {_step(app, held)[1]} was done by {app.job(held).result()['by']}")

    _title("a report of ada arrives after all: she was slow, not dead")
    answer = asyncio.run(_late(url, held))
    show(f"    her RESULT of attempt 1 gets {answer['status']} {answer['heard']}; nothing changes")

    _title("the books")
    report_of = audit(app.runtime().store)
    for event in app.runtime().store.history(held):
        show(f"    {event.n}  {event.type:<8} {'attempt ' + str(event.attempt) if event.attempt else ''}")
    with app.connect() as connection:
        ((stale,),) = list(connection.execute("SELECT count(*) FROM stale_reports"))
    done = _states(jobs)["SUCCEEDED"]
    findings = len(report_of.findings)
    show(f"    {done} of {PAGES} pages read once, {stale} late report refused, {findings} findings")
    return done == PAGES and stale == 1 and not report_of.findings and answer["status"] == 409


@contextmanager
def _broker(folder: Path) -> Iterator[str]:
    """Run a NATS server that keeps its streams in the folder."""
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which(
        "nats-server"
    )
    if program is None:
        tell("the demo needs nats-server; `make setup` brings it")
        raise SystemExit(2)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "nats")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(lambda: _answers(port), "the broker")
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


async def _keep_what_was_read(url: str) -> None:
    """Make a stream that keeps directives for an hour: one of them is answered late here."""
    client = await nats.connect(url)
    try:
        kept = StreamConfig(name=STREAM, subjects=[f"{STREAM}.>"], max_age=3600)
        await client.jetstream().add_stream(kept)
    finally:
        await client.close()


async def _late(url: str, job_id: str) -> dict[str, Any]:
    """Send the RESULT of a first attempt, as who got that directive would."""
    client = await nats.connect(url)
    try:
        jetstream = client.jetstream()
        count = (await jetstream.stream_info(STREAM)).state.messages
        found = [await jetstream.get_msg(STREAM, number) for number in range(1, count + 1)]
        said = [msgspec.json.decode(each.data or b"{}") for each in found]
        (first,) = [each for each in said if (each["jobId"], each["attempt_no"]) == (job_id, 1)]
        return await report(client, "result", first, status="SUCCEEDED", value={"by": "ada"})
    finally:
        await client.close()


def _command(page: int) -> dict[str, object]:
    about = {"tenant_id": "acme", "request_type": "read", "schema_version": "v1"}
    return {**about, "input_ref": f"scan://{page}", "output_ref": "text://", "payload": {"page": page}}


def _store(app: Tally) -> Protocols:
    store = app.runtime().store
    assert isinstance(store, Protocols), "SQLite keeps protocol jobs"
    return store


def _step(app: Tally, job_id: str) -> tuple[str, int]:
    picture = _store(app).protocol(job_id)
    assert picture is not None, "it was submitted"
    return picture.steps[0].state, picture.steps[0].attempt_no


def _states(jobs: list[Any]) -> Counter[str]:
    return Counter(job.state().value for job in jobs)


def _outbox(app: Tally, job_ids: list[str]) -> None:
    rows = [row for job_id in job_ids if (row := _store(app).directive(f"{job_id}:read:1")) is not None]
    told = Counter(row.state for row in rows)
    bar = "".join({"PENDING": "○", "SENT": "●"}.get(row.state, "x") for row in rows)
    show(f"    outbox  {bar}  {', '.join(f'{count} {state}' for state, count in sorted(told.items()))}")


def _title(text: str) -> None:
    show(f"  {ink('▸', 'cyan')} {text}")


def _wait(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"the demo waited in vain for {what}")
        threading.Event().wait(0.02)


if __name__ == "__main__":
    sys.exit(main())
