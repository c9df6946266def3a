"""Children: workflows started by a workflow, gathered together or started now and waited for later."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, overload

from tallystick.app.replay.async_drivers import drive_async
from tallystick.app.replay.call_drivers import NO_BODY, drive
from tallystick.app.replay.context import WorkflowContext
from tallystick.app.replay.joining import (
    Joining,
    Wanted,
    join,
    join_async,
    joined,
    joined_async,
    opened,
    start_child,
)
from tallystick.app.replay.waits import workflow_context
from tallystick.app.values.codec import Codec
from tallystick.engine.submission import Submission
from tallystick.errors import Misuse

R_co = TypeVar("R_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


Joiner: TypeAlias = "Callable[[WorkflowContext, Sequence[Child[Any]]], tuple[Any, ...]]"
"""How calls are begun together and waited for."""


class Callee(Protocol):
    """A workflow as its children see it."""

    @property
    def name(self) -> str:
        """Return the name by which workers know it."""
        ...

    @property
    def raises(self) -> tuple[type[Exception], ...]:
        """Return the errors that it declares, which are built again where its result is asked for."""
        ...

    def submission(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Submission:
        """Encode a call, as it becomes a job."""
        ...

    def result_codec(self) -> Codec:
        """Return how its result is read."""
        ...


class Child(Generic[R_co]):
    """A child that is prepared and starts when it is gathered; one of perhaps a hundred thousand."""

    __slots__ = ("_args", "_callee", "_kwargs")

    def __init__(self, callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Remember what to start; nothing is encoded or written before `gather` does, nor on replay."""
        self._callee = callee
        self._args = args
        self._kwargs = kwargs

    @property
    def joiner(self) -> Joiner | None:
        """Return how such calls are joined if they are no children: remote steps have their own way."""
        return None

    @property
    def submission(self) -> Submission:
        """Encode the call, as it becomes a job."""
        return self._callee.submission(self._args, self._kwargs)

    @property
    def handler(self) -> str:
        """Return the name of the workflow that runs it."""
        return self._callee.name

    @property
    def raises(self) -> tuple[type[Exception], ...]:
        """Return the errors that its workflow declares."""
        return self._callee.raises

    def codec(self) -> Codec:
        """Return how its result is read."""
        return self._callee.result_codec()

    def result(self) -> R_co:
        """Start this child alone and wait for its result, in a sync workflow."""
        context = workflow_context("result", is_async=False)
        value: R_co = join(context, (self,), Wanted(alone=True))[0]
        return value

    def __await__(self) -> Generator[Any, Any, R_co]:
        """Start this child alone and wait for its result, in an async workflow."""
        return self.joined().__await__()

    async def joined(self) -> R_co:
        """Start this child alone and return its result."""
        context = workflow_context("await", is_async=True)
        value: R_co = (await join_async(context, (self,), Wanted(alone=True)))[0]
        return value


class Started(Generic[R_co]):
    """A child that was started, to be waited for later: with `result()`, or `await` in an async workflow.

    It ends with its parent: one that has not ended by then is cancelled, unless it is detached.
    """

    __slots__ = ("_context", "_joining", "_outcome", "_waiting")

    def __init__(self, context: WorkflowContext, joining: Joining) -> None:
        """Remember which group of one it is."""
        self._context = context
        self._joining = joining
        self._outcome: tuple[Any, Exception | None] | None = None
        self._waiting = False

    def __repr__(self) -> str:
        return f"<Started {self.id}>"

    @property
    def id(self) -> str:
        """Return the identifier of the child's job."""
        return self._joining.child_id(0)

    def result(self) -> R_co:
        """Wait for the child and return its result, in a sync workflow; the same at every call."""
        self._check("result", is_async=False)
        if self._outcome is None:
            try:
                self._outcome = (joined(self._context, self._joining), None)
            except Exception as error:  # noqa: BLE001 (how the child failed, the same at every call)
                self._outcome = (None, error)
        return self._value()

    def __await__(self) -> Generator[Any, Any, R_co]:
        """Wait for the child and return its result, in an async workflow; the same at every `await`."""
        return self._joined().__await__()

    async def _joined(self) -> R_co:
        self._check("await", is_async=True)
        if self._outcome is None:
            if self._waiting:
                raise Misuse(f"another task awaits child {self.id} already: let one task pass its result on")
            self._waiting = True
            try:
                self._outcome = (await joined_async(self._context, self._joining), None)
            except Exception as error:  # noqa: BLE001 (how the child failed, the same at every await)
                self._outcome = (None, error)
            finally:
                self._waiting = False
        return self._value()

    def _value(self) -> R_co:
        assert self._outcome is not None, "it was waited for"
        value: R_co = self._outcome[0]
        if self._outcome[1] is not None:
            raise self._outcome[1]
        return value

    def _check(self, verb: str, *, is_async: bool) -> None:
        if workflow_context(verb, is_async=is_async) is not self._context:
            raise Misuse(f"child {self.id} is waited for in the workflow that has started it")


def check_children(verb: str, children: Iterable[object]) -> None:
    """Refuse what is no child: a result, an awaitable, a child that was started."""
    for child in children:
        if not isinstance(child, Child):
            raise Misuse(
                f"{verb} takes children, workflow.child(...), and no {type(child).__name__}: what a step "
                "returns is there already, async steps run side by side with asyncio.gather, and a child "
                "that was started is waited for with its result(), or awaited"
            )


def start(child: Child[A]) -> Started[A]:
    """Start a child now, and return what waits for it later, in a sync workflow."""
    context = workflow_context("start", is_async=False)
    check_children("start", (child,))
    joining = opened(context, child)
    drive(context, NO_BODY, start_child(context, joining))
    return Started(context, joining)


async def start_async(child: Child[A]) -> Started[A]:
    """Start a child now, and return what awaits it later, in an async workflow."""
    context = workflow_context("start", is_async=True)
    check_children("start", (child,))
    joining = opened(context, child)
    # The workflow is not suspended while the child is being spawned.
    with context.busy(str(joining.group)):
        await drive_async(context, NO_BODY, start_child(context, joining))
    return Started(context, joining)


@overload
def gather(a: Child[A], /, *, fail_fast: bool = ..., return_exceptions: Literal[False] = ...) -> tuple[A]: ...
@overload
def gather(
    a: Child[A], b: Child[B], /, *, fail_fast: bool = ..., return_exceptions: Literal[False] = ...
) -> tuple[A, B]: ...
@overload
def gather(
    a: Child[A],
    b: Child[B],
    c: Child[C],
    /,
    *,
    fail_fast: bool = ...,
    return_exceptions: Literal[False] = ...,
) -> tuple[A, B, C]: ...
@overload
def gather(
    *children: Child[A],
    enough: int | None = ...,
    fail_fast: bool = ...,
    return_exceptions: Literal[False] = ...,
) -> tuple[A, ...]: ...
@overload
def gather(a: Child[A], /, *, return_exceptions: Literal[True]) -> tuple[A | Exception]: ...
@overload
def gather(
    a: Child[A], b: Child[B], /, *, return_exceptions: Literal[True]
) -> tuple[A | Exception, B | Exception]: ...
@overload
def gather(
    a: Child[A], b: Child[B], c: Child[C], /, *, return_exceptions: Literal[True]
) -> tuple[A | Exception, B | Exception, C | Exception]: ...
@overload
def gather(
    *children: Child[A], enough: int | None = ..., return_exceptions: Literal[True]
) -> tuple[A | Exception, ...]: ...
def gather(
    *children: Child[Any],
    enough: int | None = None,
    fail_fast: bool = False,
    return_exceptions: bool = False,
) -> tuple[Any, ...]:
    """Start children together and wait for them: all, or `enough` of them, or until the first fails.

    Results come in the order of the children. When all have ended and some failed, `ChildrenFailed` carries
    every error and the results that are there; with `return_exceptions` the error of a child that failed
    takes the place of its result instead.
    """
    context = workflow_context("gather", is_async=False)
    check_children("gather", children)
    joiners: set[Joiner | None] = {child.joiner for child in children}
    if joiners <= {None}:
        return join(context, children, Wanted(enough, fail_fast, return_exceptions))
    if len(joiners) > 1 or enough is not None or fail_fast or return_exceptions:
        raise Misuse(
            "remote steps are gathered by themselves, and all of them: leave out children and options"
        )
    (joiner,) = joiners
    assert joiner is not None, "children that have none are joined as a group"
    return joiner(context, children)
