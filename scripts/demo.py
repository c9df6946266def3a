"""A tour of what works today: the lifecycles, the fifteen digits, and a ledger that survives kill -9.

`make demo` runs it. The crashes are real: a child process kills itself with SIGKILL before and after every
durable write, and another child goes on from what is on disk.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from tallystick.cli.ledger_drawing import draw, what_happens_next
from tallystick.cli.machines import overview
from tallystick.cli.output import Ink, show
from tallystick.core.canonical import content_hash
from tallystick.core.decisions import NextStep, count_down, enter_leg1, enter_leg2, next_step
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.lifecycles import JOB, MACHINES, JobState
from tallystick.errors import StateTransitionError

ink = Ink.for_stream(sys.stdout)


class Book:
    """One file, replaced as a whole: it stands in for a database, so that a write is all or nothing."""

    def __init__(self, path: Path) -> None:
        """Read the file, or begin an empty book."""
        empty = {"activity": 0, "guid": None, "semaphore": 1, "rows": [], "journal": [], "acknowledged": 0}
        self.path = path
        self.kept = json.loads(path.read_text()) if path.exists() else empty
        self.activity = ActivityLedger(self.kept["activity"])
        self.guid = None if self.kept["guid"] is None else GuidLedger(self.kept["guid"])

    def save(self, what: str, row: str = "", **changed: object) -> None:
        """Replace the file by one with the changes, the row and the ledgers: together or not at all."""
        self.kept.update(changed)
        self.kept["journal"].append(what)
        if row:
            self.kept["rows"].append(row)
        draft = self.path.with_suffix(".draft")
        with draft.open("w") as file:
            json.dump(self.kept, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)


def leg_1(book: Book, *, entered: bool) -> tuple[str, dict[str, object]]:
    """Return the next write of leg 1; every worker counts its entry before it works."""
    if not entered:
        return "leg 1 entry", {"activity": enter_leg1(book.activity).activity}
    return "leg 1", {"activity": book.activity.complete_leg1(), "row": "intent to charge order 42"}


def leg_2(book: Book) -> tuple[str, dict[str, object]] | None:
    """Return the next write of leg 2, decided from the ledgers alone; None when nothing is left to do."""
    activity, guid = book.activity, book.guid
    if guid is None:
        entry = enter_leg2(activity, None)
        return "leg 2 entry", {"activity": entry.activity, "guid": entry.guid}
    match next_step(guid):
        case NextStep.WORK:
            marked = {"activity": activity.mark_work(), "guid": guid.mark_work()}
            return "step 1", {**marked, "row": "charge of order 42"}
        case NextStep.CHILDREN:
            moved = count_down(book.kept["semaphore"], -1)
            marked = {"activity": activity.mark_children(), "guid": guid.mark_children(closed=moved.hit)}
            return "step 2", {**marked, "semaphore": moved.after}
        case NextStep.TASKS:
            marked = {"activity": activity.mark_tasks(), "guid": guid.mark_tasks()}
            return "step 3", {**marked, "row": "parent of the job woken"}
    return None if book.kept["acknowledged"] else ("acknowledge", {"acknowledged": 1})


def work(path: Path, die_at: int) -> None:
    """Work until nothing is left to do, or until a crash point: one before and one after each write."""
    points = itertools.count(1)
    entered = False
    while True:
        book = Book(path)
        step = leg_2(book) if book.activity.leg1_complete else leg_1(book, entered=entered)
        if step is None:
            return
        what, changes = step
        if next(points) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        book.save(what, **changes)
        if next(points) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        entered = True


def in_a_child(path: Path, die_at: int = 0) -> Book:
    """Run a worker in a process of its own and return what it left on disk."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(path, die_at)
            code = 0
        except BaseException:  # noqa: BLE001 (a child must not go on with its parent's tour)
            traceback.print_exc()
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    if status != (signal.SIGKILL if die_at else 0):
        sys.exit(f"a worker ended with status {status}, which this tour did not expect")
    return Book(path)


def crash_everywhere(folder: Path) -> int:
    """Kill a worker at every crash point, let another go on, and check the books; return the crashes."""
    clean = in_a_child(folder / "clean.json").kept
    places = [f"{when} {what}" for what in clean["journal"] for when in ("before", "after")]
    for point, place in enumerate(places, start=1):
        path = folder / f"{point}.json"
        left, done = in_a_child(path, die_at=point), in_a_child(path)
        for kept in ("rows", "semaphore", "guid", "acknowledged"):
            if done.kept[kept] != clean[kept]:
                sys.exit(f"the books do not balance after a crash {place}: {done.kept}")
        guid = "-" * 15 if left.guid is None else left.guid.text
        resumed = " · ".join(done.kept["journal"][len(left.kept["journal"]) :]) or "nothing left"
        show(
            f"  {ink('kill -9', 'red')} {place:19} {ink(left.activity.text, 'cyan')}  {ink(guid, 'cyan')}  "
            f"{ink(resumed, 'dim')}"
        )
    return len(places)


def chapter(title: str) -> None:
    """Begin a chapter."""
    show(f"\n{ink(title, 'bold', 'yellow')}\n")


def main() -> None:
    """Give the tour."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `make demo | head` ends quietly
    show(ink("Tallystick: durable execution for Python that keeps books.", "bold"))

    chapter("1  Every row follows a machine, declared once, checked at import")
    show(overview(list(MACHINES.values()), ink))
    state, story = JobState.QUEUED, "QUEUED"
    for trigger in ("dispatch", "start", "succeed"):
        state = JOB.find(state, trigger).target
        story += f" {ink(f'─{trigger}→', 'dim')} {state.name}"
    show(f"\n  a job: {story}")
    try:
        JOB.find(JobState.CANCELLING, "succeed", entity="j-42")
    except StateTransitionError as error:
        show(f"  {ink('refused:', 'red')} {error.message}")

    chapter("2  Fifteen digits say what an activity has durably done")
    ledger = ActivityLedger.parse("001110000000001")
    show(draw(ledger, what_happens_next(ledger), ink))

    chapter("3  kill -9 before and after every durable write; the digits say where to go on")
    show("  A file that is replaced as a whole stands in for the database.\n")
    show(ink("  the worker dies             activity ledger  GUID ledger      the next worker does", "dim"))
    with tempfile.TemporaryDirectory(prefix="tallystick-demo-") as folder:
        crashes = crash_everywhere(Path(folder))
    show(f"\n  {ink(f'{crashes} crashes', 'bold', 'green')}, and after each every row is there exactly once.")

    chapter("4  Equal content, equal hash")
    first = {"order": 42, "price": 10.0, "note": None}
    second = {"price": 10, "order": 42}
    for content in (first, second):
        show(f"  {content_hash(content)[:16]}…  {json.dumps(content)}")

    chapter("This is the foundation")
    show("  The stores, the engine and the workers will call these rules; they do not exist yet.")
    show(f"  Try: {ink('.venv/bin/tally machines step', 'cyan')}")
    show(f"       {ink('.venv/bin/tally ledger --guid 000111000000001', 'cyan')}")
    show(f"  Read: {ink('docs/lifecycles.md, docs/ledger.md', 'cyan')}")


if __name__ == "__main__":
    main()
