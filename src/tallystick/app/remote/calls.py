"""Calls of steps that remote workers do: asked for like a wait; values and errors are like those of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, NoReturn, TypeVar

from tallystick.app.replay.async_drivers import ask_async, in_turn
from tallystick.app.replay.calls import StepSpec, error_of, replayed
from tallystick.app.replay.children import Child, Joiner
from tallystick.app.replay.context import WorkflowContext
from tallystick.app.replay.waits import Asked, ask, ask_any, recall
from tallystick.core.remote.answers import ended
from tallystick.engine.failure import Failure
from tallystick.errors import BadInput, BadValue, Misuse
from tallystick.store.api import Protocols, Record, Wait

R_co = TypeVar("R_co", covariant=True)


def call_remote(
    context: WorkflowContext, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Return what the remote worker has returned, or raise how it failed; until then the job is put away."""
    recalled = recall(context, "remote", spec.name)
    if isinstance(recalled, Record):
        return _value(spec, recalled)
    return _value(spec, _record(recalled, ask(context, _as_wait(context, spec, recalled, args, kwargs))))


async def call_remote_async(
    context: WorkflowContext, spec: StepSpec, occurrence: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Do the same in a task, beside which others may wait."""
    context.made.pop((spec.name, occurrence), None)
    recalled = recall(context, "remote", spec.name, occurrence)
    if isinstance(recalled, Record):
        return _value(spec, await in_turn(context, recalled))
    payload = await ask_async(context, _as_wait(context, spec, recalled, args, kwargs))
    return _value(spec, _record(recalled, payload))


class RemoteCall(Child[R_co], Generic[R_co]):
    """A call of a remote step that is prepared, and goes out when it is gathered."""

    __slots__ = ("spec",)

    def __init__(self, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Remember what to ask for; nothing is encoded or written before `gather` does."""
        super().__init__(_NO_WORKFLOW, args, kwargs)
        self.spec = spec

    @property
    def joiner(self) -> Joiner:
        """Return how remote steps are joined."""
        return join_remote

    def call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return its arguments."""
        return self._args, self._kwargs


def join_remote(context: WorkflowContext, calls: Sequence[Child[Any]]) -> tuple[Any, ...]:
    """Ask for remote steps together, and return their values in order when all have ended.

    If some have failed, the error of the first of them is raised then.
    """
    mine = [call for call in calls if isinstance(call, RemoteCall)]
    ended = _begun(context, mine)
    open_ones: dict[int, Wait] = {}
    for place, (call, record) in enumerate(zip(mine, ended, strict=True)):
        if isinstance(record, Asked):
            open_ones[place] = _as_wait(context, call.spec, record, *call.call())
    while open_ones:
        taken, payload = ask_any(context, tuple(open_ones.values()))
        place = list(open_ones)[taken]
        del open_ones[place]
        asked = ended[place]
        assert isinstance(asked, Asked), "only those are open"
        ended[place] = _record(asked, payload)
    records = [record for record in ended if isinstance(record, Record)]
    return tuple(_value(call.spec, record) for call, record in zip(mine, records, strict=True))


def _begun(context: WorkflowContext, calls: Sequence[RemoteCall[Any]]) -> list[Record | Asked]:
    """Return what was recorded for calls that are made together, and what is to be asked for.

    They may have ended in any order, so all of them are recalled before one that is new is judged.
    """
    context.check()
    segment = context.segment
    found: list[Record | Asked] = []
    for call in calls:
        name = call.spec.name
        occurrence = segment.number(name)
        record = segment.past.recall("remote", name, occurrence)
        if record is not None and record.kind != "remote":
            raise context.mismatch((name, occurrence))
        if record is not None:
            context.calls.append((name, occurrence))
        found.append(record or Asked(context, "remote", name, occurrence))
    for each in found:
        if isinstance(each, Asked):
            context.check_cancelled()
            if context.has_skipped():
                raise context.mismatch((each.name, each.occurrence))
    return found


class _NoWorkflow:
    """Stands where a child has its workflow."""

    name = "a remote step"
    raises: tuple[type[Exception], ...] = ()

    def submission(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:  # noqa: ARG002 (as a workflow is asked)
        """Refuse: a remote step is no job."""
        raise Misuse("a remote step is not a child; gather it with other remote steps")

    def result_codec(self) -> NoReturn:
        """Refuse, as above."""
        raise Misuse("a remote step is not a child; gather it with other remote steps")


_NO_WORKFLOW: Final = _NoWorkflow()


def _as_wait(
    context: WorkflowContext, spec: StepSpec, asked: Asked, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Wait:
    """Return the wait for the RESULT, with what its directive is made of."""
    assert spec.remote is not None, "a remote step knows its service"
    runtime = context.runtime
    if not isinstance(runtime.store, Protocols):
        raise BadInput(f"{runtime.store.url} keeps no remote steps")
    if context.cancel_raised and not context.segment.past.was_opened((asked.name, asked.occurrence)):
        raise Misuse("a job that is being cancelled asks no remote worker: clean up with steps")
    place = (context.segment.claimed.dimension, asked.name, asked.occurrence)
    asks = spec.remote.asks(args, kwargs, place, runtime.ids.token())
    return Wait("remote", asked.name, asked.occurrence, None, asks)


def _record(asked: Asked, payload: str | None) -> Record:
    """Return a RESULT as a later replay will find it recorded."""
    result, error = ended(payload)
    return Record(asked.name, asked.occurrence, "remote", "", 0, result, error, None, 0)


def _value(spec: StepSpec, record: Record) -> Any:  # noqa: ANN401 (as annotated by the user)
    """Return the value of a step; one that does not fit its annotation is a failure of the step."""
    try:
        return replayed(spec, record)
    except BadValue as error:
        raise error_of(spec, record.occurrence, Failure.of(error)) from error
