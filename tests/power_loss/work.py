"""Real work of the real library on a recorded file, and what its users were told on the way."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

from tallystick import Fatal, Job, JobFailed, Tally, Tx, again, gather, sleep, wait
from tallystick.app.api.workflows import Workflow
from tallystick.store.sqlite import store as sqlite_store
from tests.power_loss.recorder import Ack, Note, recording

JOBS = 24
# The log is moved into the database often, so that there are power cuts in the middle of that too.
MOVE_PAGES = 48
_CALLERS = 3
_PATIENCE = "60s"


def declared(app: Tally) -> dict[str, Workflow[[str], str]]:
    """Declare a few workflows; each writes rows of the user's and returns its label."""

    @app.step
    def look(label: str) -> str:
        return label

    @app.tx
    def write(db: Tx, label: str, effect: str) -> None:
        db.execute("INSERT INTO effects VALUES (?, ?)", (label, effect))

    @app.workflow
    def plain(label: str) -> str:
        write(look(label), "once")
        return look(label)

    @app.workflow
    def waiting(label: str) -> str:
        said = wait("go", str)
        write(label, "once")
        sleep(0.005)
        return said

    @app.workflow
    def child(label: str) -> str:
        write(label, "child")
        return label

    @app.workflow
    def family(label: str) -> str:
        gather(child.child(f"{label}/a"), child.child(f"{label}/b"))
        write(label, "once")
        return label

    @app.workflow
    def turns(label: str, turn: int = 1) -> str:
        write(label, "once" if turn == 1 else f"turn{turn}")
        return label if turn == 3 else again(label, turn + 1)

    @app.workflow
    def failing(label: str) -> str:
        write(label, "once")
        raise Fatal("for good")

    return {flow.name: flow for flow in (plain, waiting, family, turns, failing)}


def recorded(folder: Path, seed: str, synchronous: str) -> list[Note]:
    """Work on a new file until all jobs have ended, and return what happened, in order."""
    with recording() as recorder:
        app = Tally(f"sqlite:///{folder / 'books.db'}?synchronous={synchronous}")
        flows = declared(app)
        pages = sqlite_store._WORTHWHILE_PAGES
        sqlite_store._WORTHWHILE_PAGES = MOVE_PAGES
        try:
            with app.transaction() as db:
                db.execute("CREATE TABLE effects (label TEXT, effect TEXT)")
            with app.worker(concurrency=4):
                user = _User(app, flows, recorder.add)
                callers = [
                    threading.Thread(target=user.work, args=(number, f"{seed} {number}"))
                    for number in range(_CALLERS)
                ]
                for caller in callers:
                    caller.start()
                for caller in callers:
                    caller.join()
        finally:
            sqlite_store._WORTHWHILE_PAGES = pages
            app.close()
    return recorder.notes


class _User:
    """Somebody who submits, sends and waits, and notes what the library has promised with each return."""

    def __init__(
        self, app: Tally, flows: dict[str, Workflow[[str], str]], note: Callable[[Note], None]
    ) -> None:
        self._app = app
        self._flows = flows
        self._note = note

    def work(self, number: int, seed: str) -> None:
        chance = random.Random(seed)
        for count in range(JOBS // _CALLERS):
            self._one(f"{number}-{count}", chance)

    def _one(self, label: str, chance: random.Random) -> None:
        name = chance.choice(list(self._flows))
        flow = self._flows[name]
        if chance.random() < 0.3:
            with self._app.transaction() as db:
                db.execute("INSERT INTO effects VALUES (?, ?)", (label, "booked"))
                job: Job[str] = flow.opts(within=db).submit(label)
            self._note(Ack("row", label, "booked"))
        else:
            job = flow.submit(label)
        self._note(Ack("job", job.id))
        if name == "waiting":
            job.send("go", label)
        try:
            value = job.result(_PATIENCE)
            self._note(Ack("result", job.id, value))
        except JobFailed:
            self._note(Ack("failure", job.id))
        self._note(Ack("row", label, "once"))
