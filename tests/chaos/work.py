"""A program of a user that has something of everything: what the processes of a run work on.

Every workflow first draws a token, which no other call returns and which is noted in a file outside the
store, then writes it into the user's table and returns it. So whatever runs again without need, is forgotten
or is done twice shows in the user's own rows and results.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from contextlib import suppress
from pathlib import Path

from tallystick import Cancelled, ChildrenFailed, Fatal, Retry, StepFailed, Tally, Tx, again, aio, gather
from tallystick import sleep as tally_sleep
from tallystick import wait as tally_wait
from tallystick.app.replay.children import Child
from tallystick.ids import SystemIds
from tests.chaos.place import LEASE_SECONDS, OwnClock, Place
from tests.patience import let_time_pass

clock = OwnClock()
app = Tally("sqlite:///chaos.db", clock=clock)
place = Place(Path())

# Crashes are many here and never the fault of these jobs.
PATIENT = 500
SOON = Retry(PATIENT, first=0.005, longest=0.05)
TURNS = 3
LINES = 10
_ids = SystemIds()
_BLINK = 0.02
_ABOUT_NOW = 0.25
_NAP = {"sqlite": "SELECT 1", "postgres": "SELECT pg_sleep(0.1)"}
_INSERT = {
    "sqlite": "INSERT INTO effects (label, effect, token) VALUES (?, ?, ?)",
    "postgres": "INSERT INTO effects (label, effect, token) VALUES (%s, %s, %s)",
}


def settle_in(folder: str, slot: int) -> Place:
    """Bind the program to the store of a run, as the process with this number."""
    global place  # noqa: PLW0603 (a process belongs to one run, and its steps need to know which)
    place = Place(Path(folder))
    parent = os.pidfd_open(os.getppid())
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    clock.watch(place, slot)
    app.bind(place.settings["urls"][slot])
    return place


def where() -> Place:
    """Return the folder of the run that this process belongs to."""
    return place


def _end_with(parent: int) -> None:
    """End when the run has ended, however it did."""
    select.select([parent], [], [])
    os._exit(3)


def _store() -> str:
    return "postgres" if app.url.startswith("postgres") else "sqlite"


def write_effect(db: Tx, label: str, effect: str, token: str) -> None:
    """Do the thing that must happen once. The table has no key: what is done twice is there twice."""
    db.execute(_INSERT[_store()], (label, effect, token))


def _drawn(label: str, step: str) -> str:
    token = _ids.token()
    place.note("effects.log", label=label, step=step, token=token)
    return token


@app.step
def draw(label: str) -> str:
    return _drawn(label, "draw")


@app.step
async def fetch(label: str) -> str:
    await asyncio.sleep(0)
    return _drawn(label, "draw")


@app.step(retry=SOON)
def stumble(label: str) -> str:
    """Fail more often than not."""
    if _ids.random() < 0.6:
        raise ConnectionError("try again")
    return _drawn(label, "stumble")


@app.step
def decline(label: str) -> str:
    raise Fatal(f"{label} is declined")


@app.step
def linger(label: str) -> str:
    """Outlive the lease, so that it has to be renewed."""
    let_time_pass(LEASE_SECONDS * 1.2)
    return _drawn(label, "linger")


@app.step
def polish(label: str) -> str:
    return _drawn(label, "polish")


@app.step
def snap(label: str) -> str:
    """Fail for good until somebody has mended it."""
    if not place.marked(f"mended-{label}"):
        raise Fatal(f"{label} has snapped")
    return _drawn(label, "snap")


@app.tx(retry=SOON)
def keep(db: Tx, label: str, effect: str, token: str) -> str:
    """Write a row of the user's; what it returns is recorded with it."""
    write_effect(db, label, effect, token)
    return token


@app.tx(retry=SOON)
def brood(db: Tx, label: str, token: str) -> None:
    """Write a row and keep the transaction open for a while, so that faults meet it."""
    write_effect(db, label, "mood", token)
    db.execute(_NAP[_store()])


@app.tx(retry=SOON)
def ship(db: Tx, label: str, token: str) -> None:
    """Write a row and submit another job in the same transaction."""
    write_effect(db, label, "ship", token)
    receipt.opts(within=db).submit(f"{label}/receipt")


@app.workflow(attempts=PATIENT)
def receipt(label: str) -> str:
    return keep(label, "receipt", draw(label))


@app.workflow(attempts=PATIENT)
def order(label: str) -> str:
    """Steps, a step that is tried again, one that fails for good, two transactions, a job within one."""
    token = draw(label)
    stumble(label)
    keep(label, "reserve", token)
    with suppress(StepFailed):
        decline(label)
    ship(label, token)
    return token


@app.workflow(attempts=PATIENT)
async def crawl(label: str) -> str:
    """Async steps at once, a sync step and a transaction out of a loop."""
    token, _right = await asyncio.gather(fetch.named("left")(label), fetch.named("right")(f"{label}/right"))
    await stumble.aio(label)
    await keep.aio(label, "page", token)
    return token


@app.workflow(attempts=PATIENT)
def approval(label: str) -> str:
    """Wait for a word of another process, for nobody, and for a while."""
    token = draw(label)
    said = tally_wait("go", str)
    nobody = tally_wait("never", str, timeout=_BLINK)
    tally_sleep(_BLINK)
    answer = f"{token}:{said}:{nobody}"
    keep(label, "approve", answer)
    return answer


@app.workflow(attempts=PATIENT)
async def parley(label: str) -> str:
    """The same in the other colour, with a word that comes at about the time at which it is too late."""
    token = await fetch(label)
    said, maybe = await asyncio.gather(aio.wait("go", str), aio.wait("maybe", str, timeout=_ABOUT_NOW))
    await aio.sleep(_BLINK)
    answer = f"{token}:{said}:{maybe}"
    await keep.aio(label, "approve", answer)
    return answer


@app.workflow(attempts=PATIENT)
def chore(label: str) -> str:
    return keep(label, "chore", draw(label))


@app.workflow(attempts=PATIENT)
def spoil(label: str) -> str:
    """Be a child that fails for good, after a transaction that stays."""
    keep(label, "chore", draw(label))
    raise Fatal(f"{label} is spoiled")


@app.workflow(attempts=PATIENT)
def family(label: str) -> str:
    """Join a group of which one fails, then one that ends well."""
    token = draw(label)
    failed = 0
    try:
        gather(chore.child(f"{label}/a"), spoil.child(f"{label}/b"))
    except ChildrenFailed as error:
        failed = len(error.errors)
    gather(chore.child(f"{label}/c"), chore.child(f"{label}/d"))
    return keep(label, "settle", f"{token}:{failed}")


async def _failures(*children: Child[str]) -> int:
    try:
        await aio.gather(*children)
    except ChildrenFailed as error:
        return len(error.errors)
    return 0


@app.workflow(attempts=PATIENT)
async def twins(label: str) -> str:
    """Join two groups that are open at once."""
    token = await fetch(label)
    _left, failed = await asyncio.gather(
        aio.gather(chore.child(f"{label}/a"), chore.child(f"{label}/b")),
        _failures(spoil.child(f"{label}/c"), chore.child(f"{label}/d")),
    )
    return await keep.aio(label, "settle", f"{token}:{failed}")


@app.workflow(attempts=PATIENT)
def rounds(label: str, token: str = "", turn: int = 1) -> str:
    """Turn a few times."""
    token = token or draw(label)
    keep(label, f"turn{turn}", token)
    if turn < TURNS:
        again(label, token, turn + 1)
    return token


@app.workflow(attempts=PATIENT, retry=SOON)
def moody(label: str) -> str:
    """Fail more often than not, after a transaction that must not happen again."""
    token = draw(label)
    brood(label, token)
    if _ids.random() < 0.5:
        raise ConnectionError("not today")
    return token


@app.workflow(attempts=PATIENT)
def doomed(label: str) -> str:
    """Fail; in the place of the job that failed, succeed."""
    token = draw(label)
    keep(label, "brace", token)
    snap(label)
    return keep(label, "mend", token)


@app.workflow(attempts=PATIENT)
def draft(label: str) -> str:
    """End; a fork begins with the polishing."""
    token = draw(label)
    keep(label, "outline", token)
    return f"{token}:{polish(label)}"


@app.workflow(attempts=PATIENT)
def patient(label: str) -> str:
    """Wait for what never comes, until somebody cancels it."""
    keep(label, "patience", draw(label))
    return tally_wait("never", str)


@app.workflow(attempts=PATIENT)
def hasty(label: str) -> str:
    """End while somebody cancels it; one of them is first, and a clean-up happens once."""
    token = draw(label)
    try:
        keep(label, "hurry", token)
        stumble(label)
    except Cancelled:
        keep(label, "regret", token)
        raise
    return token


@app.workflow(attempts=PATIENT)
def slow(label: str) -> str:
    token = draw(label)
    linger(label)
    return keep(label, "late", token)


@app.workflow(attempts=PATIENT)
def serial(label: str) -> str:
    """Write a row after another for about half a second, so that most faults meet it in the middle."""
    token = draw(label)
    for number in range(LINES):
        let_time_pass(_BLINK)
        keep(label, f"line{number}", token)
    return token


@app.workflow(attempts=PATIENT)
async def stream(label: str) -> str:
    """The same in the other colour, with a step beside each row."""
    token = await fetch(label)
    for number in range(LINES):
        await asyncio.sleep(_BLINK)
        await asyncio.gather(
            fetch.named(f"beside{number}")(f"{label}/beside"), keep.aio(label, f"line{number}", token)
        )
    return token
