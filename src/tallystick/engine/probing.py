"""Asking probes: what came of effects that are in doubt, found out by functions of the user.

The store says whose time has come, and a request takes the right to ask. What a probe answers is decided
under the lock of its job, so any number of workers may ask at once; one that comes too late changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tallystick.core.effects.requests import DueProbe, Says, SettleEffect, TakeProbe
from tallystick.core.effects.rows import BY_PROBE, EffectRow
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, SWEEP_ROWS_MAX, clip_text
from tallystick.engine.committer import Committer
from tallystick.engine.failure import Failure
from tallystick.store.api import Effects

_log = logging.getLogger("tallystick.engine")


class Said(NamedTuple):
    """What a probe has answered."""

    says: Says
    result: str | None = None
    why: str | None = None


class Probe(NamedTuple):
    """How the probe of an effect is asked: what to call for a row, and how long that may take."""

    # A function, or a coroutine function, that returns a `Said`.
    asking: Callable[[EffectRow], Callable[[], Any]]
    lease_ms: int


Run: TypeAlias = Callable[[Callable[[], Any]], Any]
"""How a function of the program is called, be it a coroutine function or not."""


def ask_probes(store: Effects, committer: Committer, probes: Mapping[str, Probe], run: Run) -> int:
    """Ask the probes whose time has come, and return how many answers were written down."""
    due = store.due_probes(sorted(probes), SWEEP_ROWS_MAX)
    return sum(_ask(committer, probes, each, run) for each in due)


def _ask(committer: Committer, probes: Mapping[str, Probe], due: DueProbe, run: Run) -> bool:
    lease_ms = probes[due.effect].lease_ms
    row = committer.call((TakeProbe(due.job_id, due.unit, due.rev, lease_ms),))
    if not isinstance(row, EffectRow):
        return False  # another worker asks, or somebody has answered
    try:
        said = run(probes[row.effect].asking(row))
    except Exception as error:  # noqa: BLE001 (a function of the user: that it raised is no answer)
        failure = Failure.of(error)
        why = clip_text(f"its probe raised {failure.type}: {failure.message}", ERROR_TEXT_BYTES_MAX)
        about = {"action": "probe.failed", "job_id": row.job_id, "effect": row.effect}
        _log.warning("job %s: %s of %s: %s", row.job_id, row.unit, row.key, why, extra=about)
        said = Said(Says.LATER, None, why)
    answer = SettleEffect(
        row.job_id, said.says, BY_PROBE, row.unit, result=said.result, why=said.why, rev=row.rev
    )
    committer.call((answer,))
    return True
