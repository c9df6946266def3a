"""kill -9 of a relay before and after all that it does: nothing lost, nothing doubled, nothing stuck."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tallystick import crash
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.requests import AnswerStep, StepAnswer, StepFence
from tallystick.engine.audit import audit
from tallystick.worker.roles import publish as _points  # noqa: F401 (importing it declares them)
from tests.patience import wait_until
from tests.remote.receiver import Receiver, receiving
from tests.remote.test_publish import command, declare, directive, look, webhook
from tests.store.sqlite_subject import child

# A worker that publishes what it finds or makes, until it is killed.
SCRIPT = """
import sys, threading
from tests.remote.test_publish import LOCAL, SECRET, command, declare
from tallystick import Webhook

app = declare(sys.argv[1], scan=Webhook(sys.argv[2], secret=SECRET, allow_networks=LOCAL))
with app.worker():
    if sys.argv[3] == "makes":
        app.command(command())
    threading.Event().wait(30)
"""
POINTS = [name for name in crash.points() if name.startswith("relay.")]
# How many copies a service gets when the relay dies there; in all other cases it is one.
COPIES = {"relay.publish.after": 2}


# On the other store, and by the other way to a directive, the moments around the publishing are enough.
OFTEN = {("sqlite", "finds", point) for point in POINTS} | {
    ("sqlite", "makes", "relay.publish.after"),
    ("postgres", "finds", "relay.publish.before"),
    ("postgres", "finds", "relay.sent.after"),
}
CASES = [
    pytest.param(store, point, how, marks=[] if (store, how, point) in OFTEN else [pytest.mark.long])
    for store in ("sqlite", "postgres")
    for point in POINTS
    for how in ("finds", "makes")
    if how == "finds" or "take" not in point  # who makes a directive does not take it
]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def test_every_moment_of_a_relay_has_a_point():
    moments = ("publish.after", "publish.before", "sent.after", "take.after", "take.before")
    assert [f"relay.{moment}" for moment in moments] == POINTS


@pytest.mark.slow
@pytest.mark.parametrize(("store", "point", "how"), CASES)
def test_a_relay_that_dies_leaves_the_directive_to_the_next(
    store_url: str, receiver: Receiver, point: str, how: str
):
    app = declare(store_url, scan=webhook(receiver))
    job_id = app.command(command()).id if how == "finds" else None
    killed = child(SCRIPT, store_url, receiver.url, how, TALLYSTICK_CRASH_AT=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    job_id = job_id or app.command(command()).id  # the same content is the same job
    let_the_right_end(app, job_id)
    with app.worker():
        wait_until(lambda: directive(app, job_id).state == "SENT")
        copies = COPIES.get(point, 1)
        assert [got.headers["webhook-id"] for got in receiver.got] == [f"{job_id}:s0:1"] * copies
        said = receiver.got[0].directive
        fence = StepFence(job_id, "s0", 1, said["lease_id"])
        result = AnswerStep(fence, StepAnswer(True, "d", value="7"), "l2")
        for heard in (Heard.ACCEPTED, Heard.DUPLICATE):  # each copy of the directive is worked on
            outcome = app.runtime().committer.call((result,))
            assert isinstance(outcome, Hearing)
            assert outcome.heard is heard
    store = app.runtime().store
    assert [event.type for event in store.history(job_id)] == ["submit", "sent", "result"]
    assert (look(app, job_id).job.state, directive(app, job_id).tries <= 2) == ("SUCCEEDED", True)
    assert audit(store).findings == []
    app.close()


def let_the_right_end(app, job_id: str) -> None:
    """Act as if the right to the try that is counted had run out: the clock of a server is not ours."""
    with app.transaction() as transaction:
        transaction.execute(
            f"UPDATE outbox SET next_try_at = 1 WHERE state = 'PENDING' AND job_id = '{job_id}'"
        )
