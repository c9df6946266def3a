"""A representative program of a user: what the children of a sweep run.

It has a step, a transaction on a table of its own, a try that fails, a step and a workflow that fail for
good, a workflow that is tried again, one that a schedule makes, both colours, a queue with limits and one
without, submissions by key and inside a transaction, and a job that kills whoever runs it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tallystick.app.api.job import Job
from tallystick.app.api.retrying import Retry
from tallystick.app.api.steps import Tx
from tallystick.app.api.tally import Tally
from tallystick.app.replay.context import WorkflowContext, current
from tallystick.app.replay.shown_values import set_value
from tallystick.engine.pending_writes import Blocked
from tallystick.errors import Fatal, StepFailed
from tallystick.ids import SystemIds
from tests.crash.sweep import facts
from tests.crash.sweep.place import Place
from tests.crash.sweep.statements import sql
from tests.patience import let_time_pass

# A loop keeps one turn, so that those that are short are trimmed too.
app = Tally("sqlite:///crash-sweep.db", keep_turns=1)
app.queue(facts.LIMITED, concurrency=facts.LIMITED_AT_ONCE, rate="1000/1s", burst=20)

# Crashes are many here and never the fault of these jobs; only the poison has a small budget.
PATIENT = 50
SOON = Retry(PATIENT, first=0.005, longest=0.02)
_LINGER_LEASES = 0.6
_DRAG_LEASES = 0.27


class Scene:
    """What the bodies need from the trial: where it happens, and where they are to be held."""

    def __init__(self) -> None:
        self.place = Place(Path())
        self.hold: Callable[[str], None] = lambda _where: None
        self._ids = SystemIds()

    def token(self, label: str, step: str) -> str:
        """Return a value that no other call returns, noted before it is returned."""
        token = self._ids.token()
        self.place.called(label, step, token)
        return token

    def pass_time(self, leases: float) -> None:
        """Wait for so much of the time that a lease lasts."""
        let_time_pass(self.place.lease_ms * leases / 1000)

    def reached(self, label: str, where: str) -> None:
        """Let those outside know that a workflow has come to a place."""
        self.place.first_time(f"{where}-{label}")


scene = Scene()


def write_effect(db: Tx, label: str, effect: str, token: str) -> None:
    """Do the thing that must happen once."""
    db.execute(sql("insert_effect", scene.place.store), (label, effect, token))


@app.step
def quote(label: str) -> str:
    """Return a price that is different every time it is asked for."""
    scene.hold("quote")
    return scene.token(label, "quote")


@app.step(retry=SOON)
def stumble(label: str) -> str:
    """Fail the first time."""
    if scene.place.first_time(f"stumble-{label}"):
        raise ConnectionError("the first try always fails")
    return scene.token(label, "stumble")


@app.step
def decline(label: str) -> str:
    """Fail for good."""
    raise Fatal(f"{label} is declined")


@app.tx(retry=SOON)
def reserve(db: Tx, label: str, price: str) -> None:
    """Take the goods once."""
    write_effect(db, label, "reserve", price)
    scene.hold("inside_tx")


@app.tx(retry=SOON)
def ship(db: Tx, label: str, price: str) -> None:
    """Send the goods once, and with them a receipt."""
    write_effect(db, label, facts.SHIPPED, price)
    receipt.opts(within=db).submit(facts.receipt_of(label))


@app.workflow(attempts=PATIENT)
def order(label: str) -> str:
    """Buy something."""
    price = quote(label)
    scene.hold("after_quote")
    stumble(label)
    reserve(label, price)
    with suppress(StepFailed):
        decline(label)
    ship(label, price)
    return price


@app.tx(retry=SOON)
def send_receipt(db: Tx, label: str) -> None:
    """Send a receipt once."""
    write_effect(db, label, "send_receipt", label)


@app.workflow(queue=facts.LIMITED, attempts=PATIENT)
def receipt(label: str) -> str:
    """Acknowledge an order."""
    send_receipt(label)
    return label


@app.step
async def fetch(label: str) -> str:
    """Return something from far away."""
    await asyncio.sleep(0)
    scene.hold("fetch")
    return scene.token(label, "fetch")


@app.step
def measure(label: str) -> str:
    """Return something that takes a thread."""
    set_value("stage", "measuring")
    return scene.token(label, "measure")


@app.tx(retry=SOON)
def keep_page(db: Tx, label: str, size: str) -> None:
    """Keep what was fetched once."""
    write_effect(db, label, "keep_page", size)


@app.workflow(queue=facts.LIMITED, attempts=PATIENT)
async def crawl(label: str) -> str:
    """Fetch two things at once, measure, and keep them."""
    await asyncio.gather(fetch.named("left")(label), fetch.named("right")(label))
    size = await measure.aio(label)
    await keep_page.aio(label, size)
    return size


@app.tx(retry=SOON)
def note_mood(db: Tx, label: str) -> None:
    """Write down a mood once."""
    write_effect(db, label, "note_mood", label)


@app.workflow(attempts=PATIENT, retry=SOON)
def moody(label: str) -> str:
    """Fail the first time, after a transaction that must not happen again."""
    note_mood(label)
    if scene.place.first_time(f"moody-{label}"):
        raise ConnectionError("not today")
    return label


@app.tx(retry=SOON)
def note_refusal(db: Tx, label: str) -> None:
    """Write down a refusal once."""
    write_effect(db, label, "note_refusal", label)


@app.workflow(attempts=PATIENT)
def refused(label: str) -> str:
    """Fail for good, after a transaction that stays."""
    note_refusal(label)
    raise Fatal(f"{label} is refused")


@app.tx(retry=SOON)
def note_tick(db: Tx, label: str) -> None:
    """Write down a tick once."""
    write_effect(db, label, "note_tick", label)


@app.workflow(attempts=PATIENT)
def tick(label: str) -> str:
    """Be made by the clock."""
    note_tick(label)
    return label


@app.step
def linger(label: str) -> str:
    """Take long enough for a lease to be renewed."""
    scene.pass_time(_LINGER_LEASES)
    return scene.token(label, "linger")


def _await_record() -> None:
    """Wait until the step before is durable, as the next call would: only the end is left to be late."""
    context = current.get()
    assert isinstance(context, WorkflowContext)
    if isinstance(context.segment.handed, Blocked):
        context.segment.handed.wait()


@app.workflow(attempts=PATIENT)
def slow(label: str) -> str:
    """Outlive a heartbeat."""
    token = linger(label)
    _await_record()
    scene.hold("finish")
    return token


@app.tx(retry=SOON)
def drag(db: Tx, label: str) -> None:
    """Hold the writer nearly as long as a transaction may; several in one flush outlast their leases."""
    write_effect(db, label, "drag", label)
    scene.pass_time(_DRAG_LEASES)


@app.workflow(attempts=PATIENT)
def sluggish(label: str) -> str:
    """Write slowly, together with others."""
    drag(label)
    return label


@app.workflow
def fleeting(label: str) -> str:
    """Be cancelled before anybody runs it, and removed."""
    return label


@app.workflow(queue="poison", attempts=facts.POISON_BUDGET)
def poison(label: str) -> str:
    """Take the whole worker down, every time."""
    scene.place.called(label, "poison", "")
    os._exit(facts.EXIT_POISONED)


@app.on_failed
def sorry(job: Job[object]) -> None:
    """Take note of a job that failed; the right to do so, and that it was done, are writes of their own."""
    assert job.row().completed_at is not None
