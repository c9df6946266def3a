"""What happened, told afterwards from the file: the takeover job by job, and one job fact by fact."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from demo.performance import Record
from demo.shop import CALLS_A_JOB
from tallystick.cli.render.ledger_drawing import draw
from tallystick.cli.render.output import Ink
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.ledger.promises import PROMISES

_SUBMITTED, _CLAIMED, _SUSPENDED, _CLOSED = (
    bundle.guid.text if bundle.guid is not None else ""
    for bundle in next(promise for promise in PROMISES if promise.name == "whole job").bundles
)
_NO_DIGITS = " " * 15

_ATTEMPTS = """
    SELECT j.payload ->> 'order', a.lease_expires_at, a.finished_at, b.lease_owner, b.started_at,
           (SELECT count(*) FROM steps AS s WHERE s.job_id = a.job_id AND s.attempt < b.attempt)
      FROM attempts AS a
      JOIN attempts AS b ON b.job_id = a.job_id AND b.attempt = a.attempt + 1
      JOIN jobs AS j ON j.job_id = a.job_id
     WHERE a.lease_owner = ?1 AND a.reason = 'EXPIRED'
     ORDER BY 1
"""
_FACTS = """
    SELECT n, at, type, attempt, payload, NULL, NULL FROM events WHERE job_id = ?1
    UNION ALL
    SELECT n, completed_at, kind, attempt, name, ledger, result FROM steps WHERE job_id = ?1
     ORDER BY 1
"""
_SAID = {
    "submit": "the job, with one obligation",
    "claim": "a lease; the start is counted in",
    "again": "what is above is not done again",
    "tx": "your row and this one, together",
    "reclaim": "the lease ran out; it is due again",
    "return": "result, end and closing digit",
}


def takeover_table(path: Path, record: Record, ink: Ink) -> list[str]:
    """Return a line for each job that the dead worker held; times count from the kill."""
    if record.victim is None:
        return []
    head = f"  order   {'already recorded':27} lease up  taken back    taken over  then"
    lines = [ink(head, "dim")]
    for order, lease_boot_ms, back_ms, owner, again_ms, replayed in _rows(
        path, _ATTEMPTS, record.victim.owner
    ):
        recorded = " ".join(CALLS_A_JOB[:replayed]) or "nothing"
        goes_on = CALLS_A_JOB[replayed] if replayed < len(CALLS_A_JOB) else "return"
        lease, back, again = (
            (end - start) / 1000
            for end, start in (
                (lease_boot_ms, record.kill_boot_ms),
                (back_ms, record.kill_ms),
                (again_ms, record.kill_ms),
            )
        )
        by = ink(f"by {record.letter_of(owner)}", "bold")
        lines.append(
            f"  {order:5}   {recorded:27} {lease:+6.2f} s  {back:+8.2f} s  {again:+5.2f} s {by}  "
            f"{ink(goes_on, 'green')}"
        )
    return lines


def walk(path: Path, record: Record, ink: Ink) -> tuple[int, list[str]]:
    """Return the number of one order that changed hands, and its life fact by fact."""
    held = record.held or (list(record.last.jobs) if record.last else [])
    chosen = max(held, key=lambda job: (1 <= job.steps < len(CALLS_A_JOB), job.steps))
    owners = dict(_rows(path, "SELECT attempt, lease_owner FROM attempts WHERE job_id = ?1", chosen.job_id))
    lines = []
    killed = record.victim is None
    for n, at, kind, attempt, text, ledger, result in _rows(path, _FACTS, chosen.job_id):
        seconds = record.seconds_of(at)
        if not killed and kind == "reclaim":
            killed = True
            dead = "kill -9     the dead write nothing, so no fact tells of it"
            lines.append(ink(f"       {record.kill_at:5.2f} s  {dead}", "red"))
        what, said, digits = _told(kind, text, ledger, result)
        who = "-" if kind in {"submit", "reclaim"} else record.letter_of(owners[attempt])
        lines.append(f"  {n:3}  {seconds:5.2f} s  {what:8} {who}  {ink(digits, 'cyan')}  {ink(said, 'dim')}")
    return chosen.order, lines


def _told(kind: str, text: str, ledger: int | None, result: str | None) -> tuple[str, str, str]:
    """Return the name of a fact, a sentence about it, and the digits that it wrote."""
    if ledger is not None:
        said = _SAID["tx"] if kind == "tx" else f"the result is kept: {result}"
        return text, said, ActivityLedger(ledger).text
    if kind == "claim":
        again = "QUEUED" not in json.loads(text)["job"]
        return ("claim", _SAID["again"], _NO_DIGITS) if again else ("claim", _SAID["claim"], _CLAIMED)
    return kind, _SAID.get(kind, ""), _CLOSED if kind == "return" else _NO_DIGITS


def closing_drawing(path: Path, order: int, ink: Ink) -> list[str]:
    """Return the drawing of the digits that the start message of an order ended with."""
    statement = "SELECT start_ledger FROM jobs WHERE payload ->> 'order' = ?1"
    ((ledger,),) = _rows(path, statement, order)
    columns = shutil.get_terminal_size().columns - 2
    return [f"  {line}" for line in draw(GuidLedger(ledger), None, ink, columns).splitlines()]


def _rows(path: Path, statement: str, value: object) -> Iterator[tuple[Any, ...]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        yield from list(connection.execute(statement, (value,)))
    finally:
        connection.close()
