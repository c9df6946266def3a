"""kill -9 at every point of a flush of each verb: said again, it ends as if nothing had happened."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tallystick.clock import SystemClock
from tallystick.engine.audit import audit
from tallystick.store.sqlite.store import SqliteStore
from tests.store.sqlite_subject import child

# One verb after the other, each said until it is answered; whoever is killed says it again.
SCRIPT = """
import sys
from pathlib import Path

from tallystick import crash
from tallystick.clock import SystemClock
from tallystick.core.remote.commands import as_job
from tallystick.core.remote.policy import Policy
from tallystick.core.remote.requests import AckStep, AnswerStep, DeliverDirective, StepAnswer, StepFence
from tallystick.core.remote.wire import Command, ProtocolDefinition, StepDefinition
from tallystick.store.sqlite.store import SqliteStore

store = SqliteStore(Path(sys.argv[1]), SystemClock())
verb = sys.argv[2]
protocol = ProtocolDefinition("p", ["t"], [StepDefinition("s0", "svc")])
command = Command("acme", "t", "in", "out", {}, "v1")
fence = StepFence("job", "s0", 1, "lease")
requests = {
    "submit": as_job(command, protocol, Policy(), job_id="job", lease_id="lease"),
    "deliver": DeliverDirective("job", "s0", 1, "w"),
    "ack": AckStep(fence),
    "result": AnswerStep(fence, StepAnswer(True, "ok"), "next"),
}
(outcome,) = store.apply([(requests[verb],)])
print(getattr(getattr(outcome, "heard", None), "name", type(outcome).__name__))
"""
VERBS = ("submit", "deliver", "ack", "result")
# What a verb is answered that is said again after it was durable.
AGAIN = {"submit": "Existing", "deliver": "STALE", "ack": "DUPLICATE", "result": "DUPLICATE"}
FIRST = {"submit": "CREATED", "deliver": "TAKEN", "ack": "ACCEPTED", "result": "ACCEPTED"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["sqlite.begin.after", "sqlite.commit.before", "sqlite.commit.after"])
def test_a_process_that_dies_in_a_verb_leaves_all_of_it_or_nothing(tmp_path: Path, point: str):
    path = tmp_path / "books.db"
    SqliteStore(path, SystemClock()).close()
    durable = point == "sqlite.commit.after"
    for verb in VERBS:
        killed = child(SCRIPT, path, verb, TALLYSTICK_CRASH_AT=point)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        said = child(SCRIPT, path, verb)
        assert said.stdout.strip() == (AGAIN if durable else FIRST)[verb], said.stderr
    store = SqliteStore(path, SystemClock())
    try:
        picture = store.protocol("job")
        assert picture is not None
        assert (picture.job.state, picture.steps[0].state) == ("SUCCEEDED", "SUCCEEDED")
        assert [event.type for event in store.history("job")] == ["submit", "sent", "ack", "result"]
        assert audit(store).findings == []
    finally:
        store.close()
