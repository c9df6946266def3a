"""Cancels, pauses, resumes or retries all jobs that a filter finds.

Each job gets its own bundle, and bundles share flushes. A job that moves meanwhile is judged as it is then;
one that it no longer applies to is left as it is and counted as passed by.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self, TypedDict, TypeVar, Unpack

from tallystick.app.api.control import (
    Guard,
    Wish,
    cancelling,
    guard_of,
    pausing,
    resuming,
    retrying,
    state_named,
)
from tallystick.app.api.retrying import Duration
from tallystick.app.api.runtime import Runtime
from tallystick.app.replay.context import refuse_inside
from tallystick.app.running.twins import twin_of
from tallystick.core.durations import duration_ms
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.limits import check_name, check_storable
from tallystick.core.verbs.holds import Held, Resumed
from tallystick.core.watching.searching import JobSearch
from tallystick.defaults import CANCEL_GRACE, TENANT
from tallystick.errors import BadInput, JobEnded, KeyMoved, NotFailed, NotFound
from tallystick.store.api import JobRow, searched

T = TypeVar("T")

OPEN: Final = tuple(state for state in JobState if state not in JOB.final)
_PAGE: Final = 500
_PASSED_BY: Final = (JobEnded, KeyMoved, NotFailed, NotFound)


class JobsReached(int):
    """How many jobs a word has reached: a number, and beside it how many were passed by.

    Those match, and the word was refused for them: they ended meanwhile, or another job has the key of one
    that was to be retried. `job.retry()` of such a one says which.
    """

    passed_by: int

    def __new__(cls, reached: int, passed_by: int = 0) -> Self:
        """Count both."""
        made = super().__new__(cls, reached)
        made.passed_by = passed_by
        return made


class Which(TypedDict, total=False):
    """What jobs have in common; `older` leaves out those that were submitted less long ago."""

    states: Sequence[JobState | str]
    workflow: str | None
    tag: str | None
    older: Duration | None
    tenant: str
    # Any filter that a store can search by, instead of the others.
    search: JobSearch
    # All jobs of the tenant, where nothing else says which.
    everything: bool


def matching(runtime: Runtime, which: Which) -> Iterator[JobRow]:
    """Yield the jobs of a tenant that have all of this in common, newest first; none if no state is left."""
    if "states" in which and not which["states"]:
        return
    if "search" in which:
        yield from _found(runtime, which["search"], which.get("states", ()))
        return
    workflow, tag, older = which.get("workflow"), which.get("tag"), which.get("older")
    until = None if older is None else runtime.clock.wall_ms() - duration_ms(older)
    tenant = check_name("tenant", which.get("tenant", TENANT))
    states = [state_named(state) for state in which.get("states", ())]
    handler = None if workflow is None else check_storable("workflow", workflow)
    if tag is not None:
        check_storable("tag", tag)
    after = None
    while rows := runtime.store.jobs(
        tenant_id=tenant, states=states, handler=handler, after=after, limit=_PAGE, tag=tag
    ):
        after = rows[-1].job_id
        yield from (row for row in rows if until is None or row.created_at <= until)


def _found(runtime: Runtime, search: JobSearch, states: Sequence[JobState | str]) -> Iterator[JobRow]:
    """Yield all jobs that a search finds in these states, window by window."""
    store, before = searched(runtime.store), None
    wanted = search._replace(states=_within(search.states, states))
    while wanted.states:
        found = store.jobs_found(wanted, before=before, limit=_PAGE)
        yield from found.rows
        before = found.rows[-1].job_id if len(found.rows) == _PAGE else found.reached
        if before is None:
            return


def reachable(verb: str, search: JobSearch) -> JobSearch:
    """Return a search for those jobs alone that a word can reach: cancel, pause, resume or retry."""
    states = (JobState.FAILED_FINAL,) if verb == "retry" else OPEN
    return search._replace(
        states=_within(search.states, states),
        is_held=search.is_held or verb == "resume",
        is_dead=search.is_dead or verb == "retry",
    )


def _within(wanted: Sequence[str], states: Sequence[JobState | str]) -> list[str]:
    asked = [state_named(state) for state in states]
    return [state for state in wanted if state in asked] if wanted else asked


def _check(which: Which) -> None:
    """Refuse words that are none, a call that says of no job why it, and filters that contradict each other.

    Python takes any word for `**which`: one that is misspelt would else let all jobs through.
    """
    known = [name for name in Which.__annotations__ if name != "everything"]
    unknown = [name for name in which if name not in Which.__annotations__]
    if unknown:
        raise BadInput(
            f"{unknown[0]!r} says nothing about jobs; what they can have in common is {', '.join(known)}"
        )
    # `states=[]` and `tag=None` are no condition.
    filters = [name for name in known if name != "tenant" and which.get(name) not in (None, (), [])]
    if which.get("everything"):
        if filters:
            raise BadInput(f"everything=True is all jobs, and {filters[0]} is not: leave one of them out")
    elif not filters:
        raise BadInput(
            "this would reach all jobs: say which (states, workflow, tag, older or search), or write "
            "everything=True to mean all jobs of the tenant"
        )
    beside = [name for name in ("workflow", "tag", "older", "tenant") if which.get(name) is not None]
    if "search" in which and beside:
        raise BadInput(f"search stands instead of {beside[0]}: write that into the JobSearch")


class Many(ABC):
    """What a Tally can say to all jobs of a kind; each method returns how many it reached and passed by.

    A call says what the jobs have in common, or `everything=True` to mean all of them.
    """

    @abstractmethod
    def runtime(self, *, create: bool = True) -> Runtime:
        """Return the open store; a Tally opens it on first use."""

    def cancel_many(
        self, *, grace: Duration = CANCEL_GRACE, by: str = "", **which: Unpack[Which]
    ) -> JobsReached:
        """Ask every unfinished job to end that matches."""
        grace_ms = duration_ms(grace)
        asked = (JobState.CANCELLED, JobState.CANCELLING)
        return self._say(
            lambda row: cancelling(row.job_id, grace_ms, by=by, guard=_guard(which, row)),
            lambda state: state in asked,
            _among(which, OPEN),
        )

    cancel_many_aio = twin_of(cancel_many)

    def pause_many(self, *, why: str = "paused by hand", by: str = "", **which: Unpack[Which]) -> JobsReached:
        """Hold every unfinished job that matches."""
        return self._say(
            lambda row: pausing(row.job_id, why, by=by),
            lambda held: held in (Held.HELD, Held.ASKED),
            _among(which, OPEN),
        )

    pause_many_aio = twin_of(pause_many)

    def resume_many(self, *, by: str = "", **which: Unpack[Which]) -> JobsReached:
        """Let every held job go on that matches."""
        return self._say(
            lambda row: resuming(row.job_id, by=by) if row.hold is not None else None,
            lambda resumed: resumed is Resumed.FREE,
            _among(which, OPEN),
        )

    resume_many_aio = twin_of(resume_many)

    def retry_many(self, *, by: str = "", **which: Unpack[Which]) -> JobsReached:
        """Make a new job in the place of every failed one that matches and was not retried.

        One whose key belongs to another job by now is passed by.
        """
        ids = self.runtime().ids
        return self._say(
            lambda row: None if row.retried_as else retrying(row.job_id, ids, row, by=by),
            lambda forked: forked.created,
            _among(which, (JobState.FAILED_FINAL,)),
        )

    retry_many_aio = twin_of(retry_many)

    def _say(
        self,
        wish_of: Callable[[JobRow], Wish[T] | None],
        reached: Callable[[T], bool],
        which: Which,
    ) -> JobsReached:
        refuse_inside("speak to many jobs")
        runtime, count, passed_by = self.runtime(), 0, 0
        # All are found before the first is spoken to: what a retry makes is not retried by the same call.
        # What is kept of each is what to say to it, not its row.
        found = ((row, wish_of(row)) for row in matching(runtime, which))
        wishes = [(wish, _guard(which, row)) for row, wish in found if wish is not None]
        for start in range(0, len(wishes), _PAGE):
            page = wishes[start : start + _PAGE]
            outcomes = runtime.committer.call_all(
                [wish.said_to(runtime.store, guard) for wish, guard in page]
            )
            for (wish, _before), outcome in zip(page, outcomes, strict=True):
                if isinstance(outcome, _PASSED_BY):
                    passed_by += 1
                elif isinstance(outcome, BaseException):
                    raise outcome
                else:
                    count += reached(wish.settle(runtime, outcome))
        return JobsReached(count, passed_by)


def tell_many(app: Many, verb: str, search: JobSearch, by: str) -> JobsReached:
    """Say a word to all jobs that a search finds, as its author, and return how many it reached."""
    say: Callable[..., JobsReached] = {
        "cancel": app.cancel_many,
        "pause": app.pause_many,
        "resume": app.resume_many,
        "retry": app.retry_many,
    }[verb]
    return say(search=search, by=by)


def in_reach(runtime: Runtime, verb: str, which: Which) -> Iterator[JobRow]:
    """Yield the jobs that a word would reach, of all that match: cancel, pause, resume or retry."""
    states = (JobState.FAILED_FINAL,) if verb == "retry" else OPEN
    for row in matching(runtime, _among(which, states)):
        if (verb != "resume" or row.hold is not None) and (verb != "retry" or row.retried_as is None):
            yield row


def _guard(which: Which, row: JobRow) -> Guard:
    """Return what stands before a request to a job that was found for a tenant."""
    return guard_of(row.job_id, which["search"].tenant_id if "search" in which else None)


def _among(which: Which, states: Sequence[JobState]) -> Which:
    """Return what was asked for, within the states in which there is a point in it."""
    _check(which)
    wanted = [state_named(state) for state in which.get("states", ())] or [state.value for state in states]
    return {**which, "states": [state for state in wanted if state in states]}
