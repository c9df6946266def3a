"""`make demo`: play, tell, audit; the exit code is 1 when the books do not balance."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import apsw

from demo.books import Entry, audit, faults
from demo.performance import DemoFailed, Performance, Plan, Record
from demo.screen import audience
from demo.shop import CALLS_A_JOB
from demo.story import closing_drawing, takeover_table, walk
from tallystick.cli.render.output import Ink, show, tell
from tallystick.errors import TallyError

ink = Ink.for_stream(sys.stdout)


def main() -> int:
    """Run the demo and return the exit code."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `make demo | head` ends quietly
    options = _options()
    folder = Path(options.keep) if options.keep else Path(tempfile.mkdtemp(prefix="tallystick-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(folder=folder, orders=options.orders, lease=options.lease, pause=options.pause)
    if plan.database.exists():
        tell(f"{plan.database} exists already; the demo wants a fresh file")
        return 2
    try:
        balanced = _perform(plan, forge=options.forge)
    except (DemoFailed, TallyError) as error:
        tell(f"{ink('the demo could not be finished:', 'bold', 'red')} {error}")
        balanced = False
    except KeyboardInterrupt:
        tell("interrupted; the workers are stopped")
        if not options.keep:
            shutil.rmtree(folder)
        return 130
    if not balanced:
        tell(f"the files are kept for you to look at: {folder}")
        return 1
    if options.keep:
        show(f"  kept: {plan.database}")
    else:
        shutil.rmtree(folder)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--orders", type=int, default=200, help="how many orders (200)")
    parser.add_argument("--lease", default="2s", help="how long a dead worker may go unnoticed (2s)")
    parser.add_argument(
        "--pause", type=float, default=0.05, help="how slow the pretended services are (0.05)"
    )
    parser.add_argument("--keep", metavar="FOLDER", help="keep the database in this folder")
    parser.add_argument(
        "--forge", action="store_true", help="book one payment twice behind our back; the audit must notice"
    )
    return parser.parse_args()


def _perform(plan: Plan, *, forge: bool) -> bool:
    show(ink("\nTallystick: durable execution for Python that keeps books.", "bold"))
    show(f"{plan.orders} orders, {plan.workers} worker processes, one SQLite file, and a kill -9 halfway.\n")
    show(ink("  each order: reserve (tx) → quote (step) → pay (tx) → pack (step) → ship (tx)", "dim"))
    show(ink("  a tx is exactly once; a step at least once, and its result is kept\n", "dim"))
    with audience(ink) as screen:
        record = Performance(plan, screen).play()
    _tell_takeover(plan, record)
    if forge:
        _forge(plan.database)
    entries = audit(plan.database, plan.calls, plan.orders)
    return _show_books(entries) and _show_times(plan, record)


def _tell_takeover(plan: Plan, record: Record) -> None:
    chapter("The takeover: what the dead worker held, who went on; seconds after the kill")
    for line in takeover_table(plan.database, record, ink):
        show(line)
    order, lines = walk(plan.database, record, ink)
    chapter(f"Order {order}, fact by fact")
    for line in lines:
        show(line)
    chapter("The digits its start message ended with: set means durable")
    for line in closing_drawing(plan.database, order, ink):
        show(line)


def _forge(database: Path) -> None:
    """Do what a bug, or a thief, would do: book one payment a second time."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute("INSERT INTO payments SELECT * FROM payments LIMIT 1")
    connection.close()
    show(ink("\n  --forge: one payment was booked twice behind Tallystick's back", "red"))


def _show_books(entries: list[Entry]) -> bool:
    chapter("The books, counted again from the file")
    for entry in entries:
        mark = ink("wrong", "bold", "red") if entry.wrong else ink("ok", "bold", "green")
        show(f"  {mark}{' ' * (5 if not entry.wrong else 2)}{entry.title:42} {ink(entry.found, 'dim')}")
    wrong = list(faults(entries))
    if wrong:
        sys.stdout.flush()
        tell(f"\n{ink('THE BOOKS DO NOT BALANCE', 'bold', 'red')}")
        for line in wrong[:20]:
            tell(f"  {line}")
        if len(wrong) > 20:
            tell(f"  … and {len(wrong) - 20} more")
    return not wrong


def _show_times(plan: Plan, record: Record) -> bool:
    chapter("Times")
    assert record.last is not None
    held = {(job.job_id, job.attempt) for job in record.held}
    back = [one.at_ms for one in record.last.reclaimed if (one.job_id, one.attempt) in held]
    taken = [one.at_ms for one in record.last.takeovers if (one.job_id, one.attempt - 1) in held]
    calls = len(CALLS_A_JOB) * plan.orders
    rows = [
        ("submitted", f"{plan.orders} orders in {record.submit_seconds * 1000:.0f} ms, each durable"),
        ("worked", f"{plan.orders} orders, {calls} durable calls in {record.work_seconds:.1f} s"),
        ("", "mostly waiting for pretended services; make bench measures"),
        ("kill to reclaim", f"{_span(back, record.kill_ms)}; the lease was {plan.lease}, the default is 30s"),
        ("kill to takeover", _span(taken, record.kill_ms)),
    ]
    for label, text in rows:
        show(f"  {ink(f'{label:17}', 'dim')} {text}")
    show(f"\n  {ink('The books balance.', 'bold', 'green')} Next: README.md, then examples/01_hello.py\n")
    return True


def _span(instants: list[int], since: int) -> str:
    if not instants:
        return "nobody was interrupted"
    return f"{(min(instants) - since) / 1000:.2f} s to {(max(instants) - since) / 1000:.2f} s"


def chapter(title: str) -> None:
    """Begin a chapter."""
    show(f"\n{ink(title, 'bold', 'yellow')}\n")


if __name__ == "__main__":
    sys.exit(main())
