"""Sweeps: a worker reclaims, ends and cancels jobs of other workers, and calls probes for them.

A sweep finds; the rules decide under the lock of each job, so any number of sweepers may work at once and one
that comes too late changes nothing. An error over one job does not stop the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tallystick.core.effects.requests import DueProbe, Says, Settled, SettleEffect, TakeProbe
from tallystick.core.effects.rows import BY_PROBE, EffectRow
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, SWEEP_ROWS_MAX, clip_text
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.requests import ExpireStep
from tallystick.core.verbs.asking import DEADLINE, EndedNow
from tallystick.engine.committer import Committer
from tallystick.engine.failure import Failure
from tallystick.engine.observe import CancelledHere, JobHeld, Reclaimed
from tallystick.errors import StaleLease, StoreError
from tallystick.ids import Ids
from tallystick.store.api import (
    CancelJob,
    CancelUnclaimed,
    Effects,
    Fence,
    Protocols,
    ReclaimAttempt,
    Store,
)

_log = logging.getLogger("tallystick.engine")

# From so many jobs on it is worth to look which of them end alike.
_ALIKE_MIN: Final = 2

Tell = Callable[[BaseException], bool]
"""Whether a refusal is worth a line in the log: it was not told before."""


def sweep(
    store: Store, committer: Committer, excused: Collection[Fence] = (), tell: Tell = lambda _error: True
) -> int:
    """Reclaim what has expired and return of how many attempts something became.

    Those of the `excused` are not charged: their worker lives, and the store did not let it write. A job for
    which the database refuses this is held, with the refusal as the reason.
    """
    requests = [
        ReclaimAttempt(lost.fence, lost.unit, excused=lost.fence in excused)
        for lost in store.expired(SWEEP_ROWS_MAX)
    ]
    taken, refused = _reclaimed(store, committer, requests)
    held = [
        request._replace(refused=f"the end of its lost attempt was refused: {error}; see tally doctor")
        for request, error in refused
    ]
    kept, stuck = _reclaimed(store, committer, held)
    for request, error in (*refused, *stuck):
        if tell(error):
            _log.error(
                "job %s: its lost attempt could not be reclaimed, %s",
                request.fence.job_id,
                error,
                extra={"action": "sweep.refused", "job_id": request.fence.job_id},
            )
    return taken + kept


def _reclaimed(
    store: Store, committer: Committer, requests: Sequence[ReclaimAttempt]
) -> tuple[int, list[tuple[ReclaimAttempt, BaseException]]]:
    """Write requests and return how many did something, and which were refused, by what."""
    taken, refused, stopped = 0, [], set()
    for request, outcome in zip(requests, committer.call_all([(each,) for each in requests]), strict=True):
        if isinstance(outcome, StoreError):
            raise outcome
        if isinstance(outcome, BaseException):
            refused.append((request, outcome))
        elif outcome is not Reclaim.LEAVE:
            taken += 1
            assert isinstance(outcome, Reclaim)
            committer.observers.tell(Reclaimed(request.fence, outcome))
            if outcome in (Reclaim.IN_DOUBT, Reclaim.HOLD):
                stopped.add(request.fence.job_id)
    for job_id in sorted(stopped):
        _tell_held(store, committer, job_id)
    return taken, refused


def _tell_held(store: Store | Effects, committer: Committer, job_id: str) -> None:
    """Tell of a job that a sweep has held for a person, if it has: it may end, or wait for a probe."""
    row = store.job(job_id)
    if row is not None and row.hold is not None:
        fence = Fence(job_id, row.attempt, "")
        committer.observers.tell(JobHeld(fence, row.handler, row.hold, row.hold_reason or ""))


class OverTime(NamedTuple):
    """A job whose grace or deadline has passed: it was `asked` to end and goes on, or it has ended."""

    job_id: str
    asked: bool


def end_overdue(store: Store, committer: Committer) -> list[OverTime]:
    """End what did not within its grace, cancel what is late, and return the jobs for which that was written.

    What is late and runs has a grace to clean up; a call of an effect that is under way is let finish.
    """
    overdue = store.overdue(SWEEP_ROWS_MAX)
    unclaimed = _ended_alike(committer, [job_id for job_id, late in overdue if not late])
    taken = [OverTime(each.job_id, asked=False) for each in overdue if each.job_id in unclaimed]
    others = [each for each in overdue if each.job_id not in unclaimed]
    bundles = [(CancelJob(job_id, CANCEL_GRACE_MS, force=not late, late=late),) for job_id, late in others]
    for each, outcome in zip(others, committer.call_all(bundles), strict=True):
        if isinstance(outcome, StoreError):
            raise outcome
        if not isinstance(outcome, BaseException):
            taken.append(OverTime(each.job_id, asked=each.late or outcome == JobState.CANCELLING))
            if isinstance(outcome, EndedNow):
                committer.observers.tell(CancelledHere(each.job_id, None, DEADLINE if each.late else None))
        # Another sweeper was faster, or the holder finished in time: both are as good.
        elif not isinstance(outcome, StaleLease):
            about = {"action": "sweep.refused", "job_id": each.job_id}
            _log.warning("job %s: refused in a sweep, %s", each.job_id, outcome, extra=about)
    return taken


def _ended_alike(committer: Committer, job_ids: Sequence[str]) -> frozenset[str]:
    """End those that no worker has ever held, in one bundle, and return which; one alone is not worth it.

    If the database refuses it over one of them, none has ended, and each is tried by itself.
    """
    if len(job_ids) < _ALIKE_MIN:
        return frozenset()
    (outcome,) = committer.call_all([(CancelUnclaimed(tuple(job_ids)),)])
    if isinstance(outcome, StoreError):
        raise outcome
    ended: frozenset[str] = outcome if isinstance(outcome, frozenset) else frozenset()
    for job_id in ended:
        committer.observers.tell(CancelledHere(job_id, None, None))
    return ended


def expire_steps(store: Protocols, committer: Committer, ids: Ids, *, relays: bool = False) -> list[Hearing]:
    """Act on remote steps whose time is over, and return what became of those that moved."""
    due = store.due_steps(SWEEP_ROWS_MAX)
    moved: list[Hearing] = []
    outcomes = committer.call_all([(ExpireStep(job, ids.token(), relays, step),) for job, step in due])
    for (job_id, _step), outcome in zip(due, outcomes, strict=True):
        if isinstance(outcome, StoreError):
            raise outcome
        if isinstance(outcome, BaseException):
            about = {"action": "sweep.refused", "job_id": job_id}
            _log.warning("job %s: refused in a sweep, %s", job_id, outcome, extra=about)
        elif isinstance(outcome, Hearing) and outcome.heard is Heard.DONE:
            moved.append(outcome)
    return moved


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
    return sum(_ask(store, committer, probes, each, run) for each in due)


def _ask(store: Effects, committer: Committer, probes: Mapping[str, Probe], due: DueProbe, run: Run) -> bool:
    lease_ms = probes[due.effect].lease_ms
    row = committer.call((TakeProbe(due.job_id, due.unit, due.rev, lease_ms),))
    if not isinstance(row, EffectRow):
        return False  # another worker asks, or it was answered
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
    if committer.call((answer,)) is Settled.HELD:
        _tell_held(store, committer, row.job_id)
    return True
