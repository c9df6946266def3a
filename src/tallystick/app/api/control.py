"""Controls a job from outside: cancel, pause, resume, fork and retry.

Every request is one bundle and the meaning of its outcome, shared by sync and async callers.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

from tallystick.app.replay.context import refuse_inside
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, KEY_CHARS_MAX, check_key, check_storable, clip_text
from tallystick.core.remote.requests import CancelProtocol
from tallystick.core.verbs.asking import EndedNow
from tallystick.core.verbs.holds import Held, Hold, Resumed
from tallystick.core.watching.acts import About, NoteAct
from tallystick.engine.failure import Failure
from tallystick.errors import BadInput, InvariantBroken, NotFound
from tallystick.ids import Ids
from tallystick.store.api import (
    Bundle,
    CancelJob,
    Forked,
    ForkJob,
    HoldJob,
    JobRow,
    OfTenant,
    Outcome,
    ResumeJob,
    Searched,
)
from tallystick.worker.notices import notice_held

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime

T = TypeVar("T")
Guard: TypeAlias = tuple[OfTenant, ...]
"""What stands before a request to a job and refuses it if that is another tenant's; nothing: for any job."""


def guard_of(job_id: str, tenant: str | None) -> Guard:
    """Return what stands before a request to a job that must be of this tenant; None: it may be of any."""
    return () if tenant is None else (OfTenant(job_id, tenant),)


DEFAULT_WHY: Final = "paused by hand"
_UNKNOWN: Final = "unknown user"


class Wish(NamedTuple, Generic[T]):
    """A bundle, and what to do and say when it is durable."""

    bundle: Bundle
    settle: Callable[[Runtime, Outcome], T]
    # What is kept of it, where it has an author.
    act: tuple[NoteAct, ...] = ()

    def said_to(self, store: object, guard: Guard = ()) -> Bundle:
        """Return the bundle as this store takes it, behind what refuses it."""
        return noted((*guard, *self.bundle), self.act, store)


def noted(bundle: Bundle, act: tuple[NoteAct, ...], store: object) -> Bundle:
    """Return a bundle with the act that it is, where the store keeps acts; it stands first."""
    return (*act, *bundle) if isinstance(store, Searched) else bundle


def cancelling(
    job_id: str, grace_ms: int, *, force: bool = False, by: str = "", guard: Guard = ()
) -> Wish[JobState]:
    """Return the wish that a job ends: at once if it is not running or by force, else after the grace.

    A protocol job is told in a second bundle, behind the same guard.
    """
    refuse_inside(f"cancel job {job_id}")

    def settle(runtime: Runtime, outcome: Outcome) -> JobState:
        if isinstance(outcome, CancelProtocol):
            runtime.committer.call((*guard, outcome))
            row = runtime.reads.job(job_id)
            return JobState.CANCELLED if row is None else JobState(row.state)
        runtime.notice_cancelled(job_id, ended=isinstance(outcome, EndedNow))
        return JobState(str(outcome))

    told = "by force" if force else f"grace {grace_ms / 1000:g} s"
    request = CancelJob(job_id, grace_ms, force=force, abandon=force, by=named(by))
    return Wish((request,), settle, act_on(About.JOB, job_id, "cancel", by, told))


def pausing(job_id: str, why: str, *, by: str = "") -> Wish[Held]:
    """Return the wish that workers do not claim a job, and that a running one stops at its next call."""
    refuse_inside(f"pause job {job_id}")

    def settle(runtime: Runtime, outcome: Outcome) -> Held:
        if not isinstance(outcome, Held):
            raise InvariantBroken(f"a pause was answered with {outcome!r}")
        if outcome is Held.ASKED and runtime.worker is not None:
            notice_held(runtime.worker, job_id, held=True)
        return outcome

    reason = clip_text(f"{why} (by {by})" if by else why, ERROR_TEXT_BYTES_MAX)
    request = HoldJob(job_id, Hold.PAUSED, reason, by=named(by))
    return Wish((request,), settle, act_on(About.JOB, job_id, "pause", by, why))


def resuming(job_id: str, *, by: str = "") -> Wish[Resumed]:
    """Return the wish that a job goes on, whatever held it."""
    refuse_inside(f"resume job {job_id}")

    def settle(runtime: Runtime, outcome: Outcome) -> Resumed:
        if not isinstance(outcome, Resumed):
            raise InvariantBroken(f"a resumption was answered with {outcome!r}")
        if outcome is Resumed.FREE:
            if runtime.worker is not None:
                notice_held(runtime.worker, job_id, held=False)
            runtime.poke()
        return outcome

    return Wish((ResumeJob(job_id, named(by)),), settle, act_on(About.JOB, job_id, "resume", by))


def forking(
    job_id: str,
    ids: Ids,
    at: str,
    version: str | None,
    fork_id: str | None,
    fresh_keys: bool = False,  # noqa: FBT001, FBT002 (as they were given)
    by: str = "",
) -> Wish[Forked]:
    """Return the wish for a new job that keeps what this one recorded before a step."""
    refuse_inside(f"fork job {job_id}")
    if fork_id is not None:
        check_key("fork id", fork_id)
    if version is not None:
        check_storable("version", version)
    point = step_named(check_storable("step", at))
    about = (job_id, ids.new(), point, False, version, fork_id, ids.token(), fresh_keys, named(by))
    request = ForkJob(*about)
    return Wish((request,), _forked)


def retrying(job_id: str, ids: Ids, row: JobRow | None, *, by: str = "") -> Wish[Forked]:
    """Return the wish for a new job in the place of one that failed: a fork at the step it failed with."""
    refuse_inside(f"retry job {job_id}")
    if row is None:
        raise NotFound(f"there is no job {job_id}", job_id=job_id)
    step = Failure.parse(row.error).step if row.error else ""
    point = step_named(step) if step else None
    return Wish((ForkJob(job_id, ids.new(), point, retry=True, lease_id=ids.token(), by=named(by)),), _forked)


def named(by: str) -> str:
    """Return a name as a fact keeps it."""
    return clip_text(check_storable("by", by), KEY_CHARS_MAX)


def process_user() -> str:
    """Return the user that runs this process, as far as that is known."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return _UNKNOWN


def act_on(about: About, name: str, verb: str, by: str, told: str = "") -> tuple[NoteAct, ...]:
    """Return what is kept of an act: nothing if it has no author."""
    return (NoteAct(about, name, verb, named(by), clip_text(told, ERROR_TEXT_BYTES_MAX)),) if by else ()


def step_named(text: str) -> tuple[str, int]:
    """Return the name and occurrence that a text like `charge` or `charge#2` means.

    >>> step_named("charge"), step_named("charge#2")
    (('charge', 1), ('charge', 2))
    """
    name, mark, occurrence = text.rpartition("#")
    # Longer numbers than this are no occurrences of anything.
    if mark and occurrence.isascii() and occurrence.isdecimal() and len(occurrence) <= 9:
        return name, int(occurrence)
    return text, 1


def _forked(runtime: Runtime, outcome: Outcome) -> Forked:
    if not isinstance(outcome, Forked):
        raise InvariantBroken(f"a fork was answered with {outcome!r}")
    if outcome.created:
        runtime.poke()
    return outcome


def state_named(state: JobState | str) -> str:
    """Return a state of a job that is named by its word, in capitals or not."""
    try:
        return JobState(str(state).upper()).value
    except ValueError:
        raise BadInput(
            f"{state!r} is not a state of a job; the states are {', '.join(JobState)}", state=str(state)
        ) from None
