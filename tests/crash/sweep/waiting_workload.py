"""The part of the workload that waits: signals early and late, timers, children in groups, turns, cancels."""

from __future__ import annotations

import asyncio

from tallystick import aio
from tallystick.app.api.retrying import Retry
from tallystick.app.api.steps import Tx
from tallystick.app.replay.children import Child, gather
from tallystick.app.replay.waits import again, sleep, wait
from tallystick.app.running.leaving import Cancelled
from tallystick.errors import ChildrenFailed, Fatal
from tests.crash.sweep import facts
from tests.crash.sweep.workload import PATIENT, SOON, app, scene, write_effect
from tests.patience import let_time_pass

_BLINK_SECONDS = 0.02
_DOZE_SECONDS = 0.25
_LONG_SECONDS = 120.0
_SHORT_SECONDS = 0.5
_TICK_SECONDS = 0.01


@app.tx(retry=SOON)
def approve(db: Tx, label: str, answers: str) -> None:
    """Keep what was answered once."""
    write_effect(db, label, "approve", answers)


@app.workflow(attempts=PATIENT)
def approval(label: str) -> str:
    """Wait for what was said before, for what is said later, for nobody, for somebody, and for a while."""
    early = wait("early", str)
    scene.reached(label, "late")
    late = wait("late", str)
    scene.hold("between_waits")
    nobody = wait("nobody", str, timeout=_BLINK_SECONDS)
    scene.reached(label, "somebody")
    somebody = wait("somebody", str, timeout=_LONG_SECONDS)
    sleep(_BLINK_SECONDS)
    answers = f"{early} {late} {nobody} {somebody}"
    approve(label, answers)
    return answers


@app.tx(retry=SOON)
def do_chore(db: Tx, label: str) -> None:
    """Do what a child does once."""
    write_effect(db, label, "do_chore", label)


@app.workflow(attempts=PATIENT)
def chore(label: str) -> str:
    """Be a child that ends well."""
    do_chore(label)
    scene.hold("chore")
    return label


@app.workflow(attempts=PATIENT)
def doze(label: str) -> str:
    """Be a child that sleeps first."""
    sleep(_DOZE_SECONDS)
    do_chore(label)
    return label


@app.workflow(attempts=PATIENT)
def spoil(label: str) -> str:
    """Be a child that fails for good, after a transaction that stays."""
    do_chore(label)
    raise Fatal(f"{label} is spoiled")


@app.tx(retry=SOON)
def settle(db: Tx, label: str, summary: str) -> None:
    """Keep what the children returned once."""
    write_effect(db, label, "settle", summary)


@app.workflow(attempts=PATIENT)
def family(label: str) -> str:
    """Join a group in which one child fails, then one of which some are enough."""
    failed = 0
    try:
        gather(chore.child(f"{label}/a"), spoil.child(f"{label}/b"), chore.child(f"{label}/c"))
    except ChildrenFailed as error:
        failed = len(error.errors)
    first = gather(*(chore.child(f"{label}/{name}") for name in "def"), enough=facts.ENOUGH)
    summary = " ".join([str(failed), *first])
    scene.hold("joined")
    settle(label, summary)
    return summary


async def _failures(*children: Child[str]) -> int:
    """Return how many children had failed when the first failure was noticed."""
    try:
        await aio.gather(*children, fail_fast=True)
    except ChildrenFailed as error:
        return len(error.errors)
    return 0


@app.workflow(attempts=PATIENT)
async def twins(label: str) -> str:
    """Join two groups that are open at once, of which the second is over first, and more than once over."""
    slow, failed = await asyncio.gather(
        aio.gather(doze.child(f"{label}/a"), doze.child(f"{label}/b")),
        _failures(spoil.child(f"{label}/c"), spoil.child(f"{label}/d"), chore.child(f"{label}/e")),
    )
    summary = " ".join([*slow, str(failed)])
    await settle.aio(label, summary)
    return summary


# Two tries a turn, and not two for all turns.
@app.step(retry=Retry(2, first=0.005, longest=0.02))
def wobble(label: str, turn: int) -> str:
    """Fail the first time in every turn."""
    if scene.place.first_time(f"wobble-{label}-{turn}"):
        raise ConnectionError("the first try always fails")
    return scene.token(label, "wobble")


@app.tx(retry=SOON)
def note_turn(db: Tx, label: str, turn: int, word: str) -> None:
    """Keep the word of a turn once."""
    write_effect(db, label, f"note_turn@{turn - 1}" if turn > 1 else "note_turn", word)


@app.workflow(attempts=PATIENT)
def rounds(label: str, turn: int = 1, heard: str = "") -> str:
    """Take one word a turn; those that come early wait for their turn."""
    if turn == facts.TURNS:
        scene.reached(label, "last turn")
    word = wait("round", str)
    wobble(label, turn)
    note_turn(label, turn, word)
    scene.hold("turn")
    heard = f"{heard} {word}".strip()
    return heard if turn == facts.TURNS else again(label, turn + 1, heard)


@app.tx(retry=SOON)
def be_patient(db: Tx, label: str) -> None:
    """Begin to wait once."""
    write_effect(db, label, "be_patient", label)


@app.workflow(attempts=PATIENT)
def patient(label: str) -> str:
    """Wait for what never comes, until somebody cancels it."""
    be_patient(label)
    scene.reached(label, "waiting")
    return str(wait("never", str, timeout=_LONG_SECONDS))


@app.tx(retry=SOON)
def hurry(db: Tx, label: str) -> None:
    """Do something once."""
    write_effect(db, label, "hurry", label)


@app.workflow(attempts=PATIENT)
def hasty(label: str) -> str:
    """End while somebody cancels it; one of them is first."""
    scene.reached(label, "leaving")
    hurry(label)
    let_time_pass(_TICK_SECONDS)
    return label


@app.step
def tick(label: str) -> str:
    """Pass the time."""
    let_time_pass(_TICK_SECONDS)
    return scene.token(label, "tick")


@app.tx(retry=SOON)
def clean_up(db: Tx, label: str) -> None:
    """Put things back once."""
    write_effect(db, label, facts.CLEAN_UP, label)


@app.workflow(attempts=PATIENT)
def stubborn(label: str) -> str:
    """Go on for ever, and clean up when asked to end."""
    try:
        while True:
            tick(label)
            scene.reached(label, "ticking")
            scene.hold("ticking")
    except Cancelled:
        clean_up(label)
        raise


@app.workflow(attempts=PATIENT)
def heir(label: str) -> str:
    """Be at the bottom of a tree, and wait for what never comes."""
    scene.reached(label.partition("/")[0], "gathered")
    return str(wait("never", str))


@app.workflow(attempts=PATIENT)
def branch(label: str) -> str:
    """Be in the middle of a tree."""
    return "".join(gather(heir.child(f"{label}/a"), heir.child(f"{label}/b")))


@app.workflow(attempts=PATIENT)
def clan(label: str) -> str:
    """Be at the top of a tree that is cancelled as soon as somebody is at its bottom."""
    return "".join(gather(branch.child(f"{label}/a"), heir.child(f"{label}/b")))


@app.workflow(attempts=PATIENT, deadline=_SHORT_SECONDS)
def overtime(label: str) -> str:
    """Wait for what never comes, until the deadline has passed."""
    return str(wait("never", str))
