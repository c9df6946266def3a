"""The worker of a soak: submits and runs jobs with large payloads until its input ends; prints JSON lines.

    python -m bench.on_postgres.soaking '{"in_flight": 64, "waiting": 2000, "dsn": "..."}'

A job takes 1 to 10 KB, has two steps that return as much, and keeps its result. Some are always waiting,
so that the queue has a backlog. Every second it says how many have ended since it began.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time

from tallystick import Tally
from tallystick.engine.observe import JobFinished

KB = 1024
LIST = 100
app = Tally()


@app.step
async def fetch(text: str) -> str:
    return text[::-1]


@app.step
async def keep(text: str) -> int:
    return len(text)


@app.workflow
async def soak(text: str) -> str:
    fetched = await fetch(text)
    await keep(fetched)
    return fetched


def text(chance: random.Random) -> str:
    """Return 1 to 10 KB of words that compress about as well as people's data."""
    size = chance.randint(KB, 10 * KB)
    words = (f"{chance.getrandbits(40):x}" if chance.random() < 0.5 else "quantity" for _ in range(size // 9))
    return " ".join(words)[:size]


class Counted:
    """How many jobs have ended here."""

    def __init__(self) -> None:
        self.ended = 0

    def __call__(self, _end: object) -> None:
        self.ended += 1


def main() -> None:
    order = json.loads(sys.argv[1])
    app.bind(order["dsn"])
    counted = Counted()
    runtime = app.runtime()
    runtime.observers.on(JobFinished, counted)
    stopping = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stopping.set()), daemon=True).start()
    chance = random.Random(7)
    texts = [text(chance) for _ in range(500)]
    submitted, said_at = 0, time.monotonic()
    with app.worker(concurrency=order["in_flight"]):
        while not stopping.is_set():
            if submitted - counted.ended < order["waiting"]:
                soak.submit_many([(chance.choice(texts),) for _ in range(LIST)])
                submitted += LIST
            else:
                stopping.wait(0.002)
            if time.monotonic() - said_at >= 1:
                said_at += 1
                print(json.dumps({"ended": counted.ended, "submitted": submitted}), flush=True)
    app.close()


if __name__ == "__main__":
    main()
