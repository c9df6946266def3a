"""Effects that end with their job or after it, when its history can tell nothing of them any more.

Those of which nothing has happened end with the job. Those that a job ended by force has left in doubt are
answered later: the line of that answer in the chain of acts holds what a fact would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from tallystick.core.audit.fingerprints import of_effect
from tallystick.core.effects.rows import BY_CALL, Came, EffectRow
from tallystick.core.watching.acts import About, NoteAct

RESOLVED: Final = "resolve"
"""The verb of the act that tells what came of an effect after its job has ended."""

_LEFT: Final = "the job ended before it was called again, and nothing had happened"


def act_of(done: EffectRow) -> NoteAct:
    """Return what tells of an effect that ended after its job."""
    told = f"{done.unit}: {done.outcome}, {of_effect(done)}"
    return NoteAct(About.JOB, done.job_id, RESOLVED, done.ended_by or BY_CALL, told)


def not_done(row: EffectRow, why: str) -> str:
    """Return the error of an effect that was tried as often as it may be and has not happened."""
    return error_text("NotDone", f"{row.effect} was not done: {why}", Came.NOT_DONE, row.calls)


def left(row: EffectRow) -> str:
    """Return the error of an effect of which nothing had happened when its job ended."""
    return not_done(row, _LEFT)


def error_text(kind: str, message: str, code: str, tries: int = 1) -> str:
    """Return an error in the form in which the errors of all steps are kept."""
    about = {"type": kind, "message": message, "code": code, "tries": tries}
    return msgspec.json.encode(about).decode()


def wrong_after_end(key: EffectRow, completed_at: int, acts: frozenset[str]) -> Iterator[str]:
    """Say what is wrong about an effect that no fact ends; `acts` tell of those that were answered later."""
    if key.ended_by == BY_CALL:
        ended = (key.outcome, key.result, key.error, key.doubt, key.ended_at, key.probes)
        if ended != (Came.NOT_DONE, None, left(key), None, completed_at, 0):
            yield f"it is {key.outcome}, and its job ended without a word of it"
    elif act_of(key).told not in acts:
        yield f"it was ended by {key.ended_by} after its job, and no act says that of it"
