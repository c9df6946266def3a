"""The part of the program that reaches outside, or is held to a measure: effects, remote work, queues, ticks.

What a bank or a remote service did is noted in a file of theirs, outside the store, before they answer. A
bank does everything that it is told, also twice.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from tallystick import (
    DidNotHappen,
    Happened,
    Key,
    NotDone,
    RemoteStep,
    Tx,
    current,
)
from tallystick.ids import SystemIds
from tests.chaos.oracle_outside import SEATS, TICK, TICK_SECONDS
from tests.chaos.work import PATIENT, SOON, app, draw, fetch, keep, stumble, where
from tests.patience import let_time_pass

# Longer than a process is ever frozen: who looks at its lease, is frozen and then acts still acts in time.
CALL = "6s"
SETTLE = "1s"
DEPOT, PRESS = "depot", "press"
_SHORT = "3s"
# A clock that is put forward by a year is believed: a day would be over then.
_SOME_DAY = "3650d"
_ids = SystemIds()
_BLINK = 0.02
_SEAT = {
    "sqlite": "INSERT INTO seats (label, what, attempt) VALUES (?, ?, ?)",
    "postgres": "INSERT INTO seats (label, what, attempt) VALUES (%s, %s, %s)",
}


def receipt_of(key: str) -> str | None:
    """Return what the bank has given for a key, as a person or a probe finds it in its books."""
    found = [note["receipt"] for note in where().notes("bank.log") if note["key"] == key]
    return str(found[0]) if found else None


def _found(key: Key, label: str, token: str) -> Happened[str] | DidNotHappen:
    receipt = receipt_of(key)
    return DidNotHappen() if receipt is None else Happened(receipt)


def _paid(key: Key, label: str, token: str) -> str:
    """Act, and lose the answer now and then; now and then do nothing, and say so."""
    mood = _ids.random()
    if mood < 0.15:
        raise NotDone("the bank is busy")
    receipt = _ids.token()
    where().note("bank.log", key=key, label=label, token=token, receipt=receipt)
    if mood > 0.9:
        raise ConnectionError("the answer of the bank was lost")
    return receipt


@app.effect(key="charge:{label}", probe=_found, timeout=CALL, settle=SETTLE, retry=SOON)
def charge(key: Key, label: str, token: str) -> str:
    return _paid(key, label, token)


@app.effect(key="send:{label}", probe=_found, timeout=CALL, settle=SETTLE, retry=SOON)
async def send(key: Key, label: str, token: str) -> str:
    await asyncio.sleep(_BLINK)
    return _paid(key, label, token)


@app.effect(key="swear:{label}", timeout=CALL, settle=SETTLE, retry=SOON)
def swear(key: Key, label: str, token: str) -> str:
    """Nobody but a person can find out what came of it."""
    return _paid(key, label, token)


@app.workflow(attempts=PATIENT)
def payment(label: str) -> str:
    token = draw(label)
    return keep(label, "paid", f"{token}:{charge(label, token)}")


@app.workflow(attempts=PATIENT)
async def transfer(label: str) -> str:
    """Pay beside a step that is tried again."""
    token = await fetch(label)
    receipt, _other = await asyncio.gather(send(label, token), stumble.aio(label))
    return await keep.aio(label, "paid", f"{token}:{receipt}")


@app.workflow(attempts=PATIENT)
def pledge(label: str) -> str:
    token = draw(label)
    return keep(label, "paid", f"{token}:{swear(label, token)}")


@app.remote(DEPOT, ack=_SHORT, lease=_SHORT, start_within=_SOME_DAY, retry=SOON)
def pick(label: str, token: str) -> str:
    raise NotImplementedError


@app.workflow(attempts=PATIENT)
def parcel(label: str) -> str:
    token = draw(label)
    return keep(label, "parcel", f"{token}:{pick(label, token)}")


@app.workflow(attempts=PATIENT)
async def caravan(label: str) -> str:
    """Ask a remote worker beside steps of our own, with what another step returned."""
    token = await fetch(label)
    receipt, _other, _right = await asyncio.gather(
        pick.aio(label, token), stumble.aio(label), fetch.named("right")(f"{label}/right")
    )
    return await keep.aio(label, "parcel", f"{token}:{receipt}")


scan = app.protocol(
    "scan",
    request_types=["scan"],
    start_within=_SOME_DAY,
    steps=[
        RemoteStep("read", service=DEPOT, ack=_SHORT, lease=_SHORT, retry=SOON),
        RemoteStep("print", service=PRESS, ack=_SHORT, lease=_SHORT, retry=SOON),
    ],
)


def command(label: str) -> dict[str, object]:
    """Return the command for a protocol job; the same label is the same job."""
    return {
        "tenant_id": "default",
        "request_type": "scan",
        "input_ref": f"s3://in/{label}",
        "output_ref": f"s3://out/{label}",
        "payload": {"label": label},
        "schema_version": "v1",
    }


app.queue("narrow", concurrency=SEATS)


@app.tx(retry=SOON)
def take_seat(db: Tx, label: str, what: str, attempt: int) -> None:
    """Write down who comes and who goes, in the order in which that becomes durable."""
    if app.url.startswith("postgres"):
        db.execute("LOCK TABLE seats IN EXCLUSIVE MODE")
        db.execute(_SEAT["postgres"], (label, what, attempt))
    else:
        db.execute(_SEAT["sqlite"], (label, what, attempt))


@app.workflow(attempts=PATIENT, queue="narrow")
def seat(label: str) -> str:
    """Run beside one other at most."""
    token = draw(label)
    take_seat(label, "comes", current().attempt)
    let_time_pass(_BLINK)
    take_seat(label, "goes", current().attempt)
    return keep(label, "sat", token)


@app.schedule(f"every {TICK_SECONDS}s")
@app.workflow(attempts=PATIENT)
def tick(scheduled_at: datetime) -> str:
    label = f"{TICK}{int(scheduled_at.timestamp())}"
    return keep(label, "tick", draw(label))
