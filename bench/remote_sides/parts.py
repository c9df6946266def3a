"""What the parts of a callback cost by themselves: reading, the token, the rule, the rows."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tallystick.clock import SystemClock
from tallystick.core.pictures import Now
from tallystick.core.remote.commands import as_job
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.reports import read_report
from tallystick.core.remote.requests import Callback, DeliverDirective, StepFence, SubmitCommand
from tallystick.core.remote.tokens import read_callback_keys
from tallystick.core.remote.wire import Command, ProtocolDefinition, StepDefinition
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.store.sqlite.store import SqliteStore

COUNT, FLUSH = 1_024, 64
PROTOCOL = ProtocolDefinition("work", ["work"], [StepDefinition("s", "s")])


def prices(folder: Path) -> dict[str, float]:
    """Return the microseconds of processor time of each part."""
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        store = SqliteStore(Path(fresh) / "books.db", SystemClock())
        try:
            return _prices(store)
        finally:
            store.close()


def _prices(store: SqliteStore) -> dict[str, float]:
    keys = read_callback_keys("k1:" + "s" * 32)
    fences = [StepFence(f"job-{n}", "s", 1, f"lease-{n}") for n in range(COUNT)]
    _flushed(store, [_submission(n, fence) for n, fence in enumerate(fences)])
    _flushed(store, [DeliverDirective(fence.job_id, "s", 1, "w") for fence in fences])
    bodies = [_body(fence) for fence in fences]
    tokens = [keys.token("acme", fence, store.now()) for fence in fences]
    pictures = [store.protocol(fence.job_id) for fence in fences]
    requests: list[Callback] = []
    now = Now(store.now())
    reading = _timed(lambda: requests.extend(map(_read, bodies)))
    token = _timed(lambda: [keys.tenant(*each, now.wall) for each in zip(tokens, fences, strict=True)])
    rule = _timed(lambda: [decide(*each, now) for each in zip(pictures, requests, strict=True)])
    rows = _timed(lambda: _flushed(store, requests))
    return {
        "reading the RESULT strictly": reading,
        "checking the token": token,
        "deciding (the verb, with the fact)": rule,
        f"rows, chain and commit, {FLUSH} per flush": rows - rule,
    }


def _flushed(store: SqliteStore, requests: list) -> None:
    for start in range(0, len(requests), FLUSH):
        for outcome in store.apply([(each,) for each in requests[start : start + FLUSH]]):
            assert not isinstance(outcome, BaseException), outcome


def _timed(function: Callable[[], object]) -> float:
    begun = time.process_time()
    function()
    return (time.process_time() - begun) / COUNT * 1e6


def _submission(n: int, fence: StepFence) -> SubmitCommand:
    command = Command("acme", "work", "in", "out", {"n": n}, "v1")
    return as_job(command, PROTOCOL, Policy(), job_id=fence.job_id, lease_id=fence.lease_id)


def _read(body: bytes) -> Callback:
    return read_report("result", body, "next", relays=False)


def _body(fence: StepFence) -> bytes:
    job_id, step_id, attempt_no, lease_id = fence
    said = {"jobId": job_id, "stepId": step_id, "attempt_no": attempt_no, "lease_id": lease_id}
    return json.dumps({**said, "status": "SUCCEEDED", "value": 1}).encode()
