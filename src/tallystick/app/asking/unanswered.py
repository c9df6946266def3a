"""Effects that wait and that no hold shows: those in doubt for a person, those at rest for their function.

A job that was asked to end is never held, and one that was ended by force cannot be; and an effect whose
probe no program declares any more waits without a hold too. `tally doctor` and the dashboard name them.
An effect at rest whose call the function has given up keeps its key until the job ends: `tally doctor` names
it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tallystick.app.asking.effects_why import resolving_commands, whether
from tallystick.app.asking.sentence import clock_text
from tallystick.core.effects.rows import EffectRow
from tallystick.core.verbs.effects.doubting import LOST
from tallystick.store.api import Store

PROBE_LATE_MS: Final = 600_000
"""For how long a probe may be due before it is said that no worker asks it."""

FORGOTTEN_MS: Final = 600_000
"""For how long an effect may be due before it is said that its function does not come back to it."""


class Unanswered(NamedTuple):
    """One of these effects: the state of its job (None: it is gone), what is known, and what to do."""

    row: EffectRow
    job_state: str | None
    says: str
    command: str


def unanswered_effects(store: Store, tenant_id: str | None, limit: int) -> list[Unanswered]:
    """Return the first effects that wait for a person and no hold shows; None for all tenants."""
    until = store.now() - PROBE_LATE_MS
    return [
        Unanswered(row, job_state, _says(row), _command(row, job_state))
        for row, job_state in store.inspect().stuck_effects(tenant_id, until=until, limit=limit)
    ]


def forgotten_effects(store: Store, limit: int) -> list[str]:
    """Return a sentence for each of the first effects at rest to which their function does not come back."""
    until = store.now() - FORGOTTEN_MS
    return [_forgotten(row) for row in store.inspect().forgotten_effects(until=until, limit=limit)]


def _forgotten(row: EffectRow) -> str:
    return (
        f"job {row.job_id}: {row.effect} under the key {row.key!r} ({row.unit}) may be called again since "
        f"{clock_text(row.due_at)}, and its function does not come back to it: has it cancelled the task of "
        f"that call? The key is taken until the job ends; tally why {row.job_id} says what it waits for"
    )


def _says(row: EffectRow) -> str:
    if row.due_at is None:
        doubt = (row.doubt or LOST).split("\n", 1)[0]
        return f"it is unknown {whether(row)}, and only a person can say: {doubt}"
    unasked = f"no worker asks the probe of {row.effect}: is there a program that declares it?"
    return (
        f"it is unknown {whether(row)}; its probe has been due since {clock_text(row.due_at)}, and {unasked}"
    )


def _command(row: EffectRow, job_state: str | None) -> str:
    happened, did_not, *_retry = resolving_commands(row, job_state, is_alone=False)
    return f"{happened}, or {did_not.rpartition(' ')[2]}"
