"""Publishing: how fast a relay drains an outbox, and how late a directive is while 10,000 others wait.

Beside it the relay that people write by hand: a table, a loop, one commit for each row.

The service is a small HTTP server in a process of its own. Lag is from the instant at which a directive is
due to the instant at which SENT is durable, both by the clock of the store, as the rows say it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path

from bench.environment import python_of
from bench.kernel import compared
from bench.side import Side
from bench.side import measure as run_side
from tallystick import RemoteStep, Tally, Webhook

SECRET = "a secret for measuring only"
LAG_GOAL_MS = 250.0
BATCH = 20
REQUESTS = "requests==2.32.5"


def main(*, quick: bool, rounds: int | None = None) -> list[dict]:
    pending, fresh = (2_000, 300) if quick else (10_000, 1_000)
    lags, rates, by_hand = [], [], []
    for number in range(rounds or (1 if quick else 3)):
        lag, rate, cpu = measure(pending, fresh)
        lags.append(lag)
        rates.append(rate)
        by_hand += relayed_by_hand(pending // 5)
        theirs = f"; by hand {by_hand[-1]:,.0f}/s" if by_hand else ""
        ours = f"lag p99 {lag:.0f} ms, {rate:,.0f} webhooks/s, {cpu:.0f} us of CPU each"
        print(f"  round {number + 1}  {ours}{theirs}", flush=True)
    lag, rate = statistics.median(lags), statistics.median(rates)
    row = compared(
        f"webhooks out of {pending:,} pending",
        rate,
        "relay by hand" if by_hand else None,
        statistics.median(by_hand) if by_hand else None,
        "/s",
    )
    if by_hand:
        row |= {"goal": ">= 1x", "met": row["ratio"] >= 1}
    late = compared(f"publish lag p99, {pending:,} pending elsewhere", lag, None, None, "ms")
    return [late | {"goal": f"<= {LAG_GOAL_MS:g} ms", "met": lag <= LAG_GOAL_MS}, row]


def relayed_by_hand(rows: int) -> list[float]:
    """Return how many webhooks per second the loop sends, or nothing where it cannot be had."""
    python = python_of(REQUESTS)
    if python is None:
        return []
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder, served() as port:
        side = Side("relay by hand", (str(python), "-m", "bench.remote_sides.relay_by_hand"))
        said = run_side(side, Path(folder), jobs=rows, url=f"http://127.0.0.1:{port}/fast").answer
    return [said["jobs"] / said["seconds"]]


def measure(pending: int, fresh: int) -> tuple[float, float, float]:
    """Return the lag in ms of 99 of 100 fresh directives, how many go out per second, and the CPU of each."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder, served() as port:
        app = Tally(f"sqlite:///{folder}/books.db", callback_url="https://tally.example")
        for name in ("fast", "hung"):
            url = f"http://127.0.0.1:{port}/{name}"
            app.service(name, via=Webhook(url, secret=SECRET, allow_networks=["127.0.0.0/8"]))
            app.protocol(name, request_types=[name], steps=[RemoteStep("s", service=name)])
        submit(app, "hung", pending)
        with app.worker(grace="0s"):
            # The first batch opens connections and loads what a publisher needs.
            for start in range(0, BATCH + fresh, BATCH):
                submit(app, "fast", BATCH, start)
                wait_for(app, start + BATCH)
        lags = sorted(sent - created for created, sent in rows(app)[BATCH:])
        submit(app, "fast", pending, BATCH + fresh)
        begun, used = time.perf_counter(), time.process_time()
        with app.worker(grace="0s"):
            wait_for(app, BATCH + fresh + pending)
            rate = pending / (time.perf_counter() - begun)
            cpu = (time.process_time() - used) / pending * 1e6
        app.close()
    return float(lags[int(0.99 * len(lags))]), rate, cpu


def submit(app: Tally, kind: str, count: int, start: int = 0) -> None:
    """Submit commands that share flushes, as tasks of one loop do."""

    async def all_of_them() -> None:
        for first in range(start, start + count, 200):
            batch = range(first, min(first + 200, start + count))
            await asyncio.gather(*(app.command_aio(command(kind, n)) for n in batch))

    asyncio.run(all_of_them())


def command(kind: str, n: int) -> dict[str, object]:
    about = {"tenant_id": "acme", "request_type": kind, "input_ref": "in", "output_ref": "out"}
    return {**about, "payload": {"n": n}, "schema_version": "v1"}


def rows(app: Tally) -> list[tuple[int, int]]:
    sql = (
        "SELECT created_at, sent_at FROM outbox WHERE service = 'fast' AND state = 'SENT' ORDER BY created_at"
    )
    with app.connect() as connection:
        return [(int(created), int(sent)) for created, sent in connection.execute(sql)]


def wait_for(app: Tally, count: int) -> None:
    """Wait until so many are out; the look is short, because it takes from what is measured."""
    sql = "SELECT count(*) FROM outbox WHERE service = 'fast' AND state = 'SENT'"
    with app.connect() as connection:
        while next(iter(connection.execute(sql)))[0] < count:
            time.sleep(0.02 if count < 5_000 else 0.25)


class served:  # noqa: N801 (used as a function)
    """A service in a process of its own: `/fast` answers at once, `/hung` never."""

    def __enter__(self) -> int:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        return ours.recv()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


def serve(pipe) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            lines = head.lower().split(b"\r\n")
            (length,) = [
                int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")
            ]
            await reader.readexactly(length)
            if b"/hung" in lines[0]:
                await asyncio.sleep(3600)
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
