"""One measurement of our remote work over HTTP; prints one line of JSON.

    python -m bench.remote_sides.ours '{"case": "pull", "jobs": 4000, "concurrency": 64, "folder": "."}'

`pull`: commands are submitted first. Then one server process and one worker process do the steps; the clock
runs from the first tenth to the last end, by the rows. `callbacks`: RESULTs over kept connections, each a
request of its own, or against the bare endpoint (`bare`).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from bench.remote_sides.app import app, command
from bench.remote_sides.processes import cpu_seconds, our_server, running, serving

GATHERED = 200
ENDS = "SELECT completed_at FROM jobs WHERE completed_at IS NOT NULL ORDER BY completed_at"
OPEN = "SELECT count(*) FROM jobs WHERE completed_at IS NULL"


def submit(store: str, jobs: int) -> None:
    """Submit commands that share flushes, as tasks of one loop do."""

    async def all_of_them() -> None:
        for first in range(0, jobs, GATHERED):
            batch = range(first, min(first + GATHERED, jobs))
            await asyncio.gather(*(app.command_aio(command(n)) for n in batch))

    app.bind(store)
    asyncio.run(all_of_them())


def pull(order: dict, store: str) -> dict:
    jobs = order["jobs"]
    submit(store, jobs)
    with serving(*our_server(store)) as (url, key, server):
        used = cpu_seconds(server)
        with running("bench.remote_sides.work", url, key, str(order["concurrency"])) as worker:
            wait_for_ends()
            cpu = {"server": cpu_seconds(server) - used, "worker": cpu_seconds(worker.pid)}
    with app.connect() as connection:
        ends = [at for (at,) in connection.execute(ENDS)]
    tenth = jobs // 10
    return {"jobs": jobs - tenth, "seconds": (ends[-1] - ends[tenth - 1]) / 1000, "cpu_us": per(cpu, jobs)}


def wait_for_ends() -> None:
    with app.connect() as connection:
        while list(connection.execute(OPEN)) != [(0,)]:
            time.sleep(0.2)


def per(cpu: dict[str, float], count: int) -> dict[str, int]:
    return {name: round(seconds / count * 1e6) for name, seconds in cpu.items()}


def callbacks(order: dict, store: str) -> dict:
    jobs, bare = order["jobs"], order["bare"]
    submit(store, jobs)
    with serving(*our_server(store)) as (url, key, server):
        reports = [result_of(each) for each in given(url, key, jobs)]
        if not bare:
            return posted(url, server, reports, order)
    with serving("bench.remote_sides.bare") as (url, _key, server):
        return posted(url, server, reports, order)


def given(url: str, key: str, jobs: int) -> list[dict]:
    """Ask for all directives, a new worker each time: what is not acknowledged would come again."""
    found: list[dict] = []
    while len(found) < jobs:
        asked = f"{url}/v1/directives?service=s&worker=w{len(found)}&max=64"
        with urlopen(Request(asked, headers={"Authorization": f"Bearer {key}"})) as answer:
            found += json.load(answer)["directives"]
    return found


def result_of(directive: dict) -> tuple[str, bytes]:
    fence = {name: directive[name] for name in ("jobId", "stepId", "attempt_no", "lease_id")}
    return directive["token"], json.dumps({**fence, "status": "SUCCEEDED", "value": 1}).encode()


def posted(url: str, server: int, reports: list[tuple[str, bytes]], order: dict) -> dict:
    """Post every report over so many kept connections, and insist on 200."""
    used, begun = cpu_seconds(server), time.perf_counter()
    asyncio.run(post_all(url, reports, order["connections"]))
    seconds = time.perf_counter() - begun
    cpu = {"server": cpu_seconds(server) - used}
    return {"jobs": len(reports), "seconds": seconds, "cpu_us": per(cpu, len(reports))}


async def post_all(url: str, reports: list[tuple[str, bytes]], connections: int) -> None:
    place = urlsplit(url)
    left = iter(reports)

    async def post() -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        for token, body in left:
            head = (
                f"POST /v1/callbacks/result HTTP/1.1\r\nHost: {place.netloc}\r\n"
                f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            length = next(
                line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            await reader.readexactly(int(length.partition(b":")[2]))
        writer.close()

    await asyncio.gather(*(post() for _ in range(connections)))


def main() -> None:
    order = json.loads(sys.argv[1])
    store = f"sqlite:///{Path(order['folder']).resolve() / 'books.db'}"
    with closing(app):
        print(json.dumps({"pull": pull, "callbacks": callbacks}[order["case"]](order, store)))


if __name__ == "__main__":
    main()
