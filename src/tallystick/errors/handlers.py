"""What a handler raises itself, and what it is told when it calls us where we cannot keep our promise."""

from __future__ import annotations

from tallystick.errors.root import TallyError


class NoRetry(TallyError):
    """The handler says that trying again cannot help."""

    code = "NO_RETRY"


class Fatal(NoRetry):
    """Raise this in a step that must not be tried again."""

    code = "FATAL"


class NotDone(TallyError):
    """Raise this in an effect that has certainly done nothing: it may be called again."""

    code = "NOT_DONE"


class Misuse(TallyError):
    """The API was called where it cannot keep its promise."""

    code = "MISUSE"


class OutsideWorkflow(Misuse):
    """This call is durable only inside a workflow."""

    code = "OUTSIDE_WORKFLOW"


class WrongColour(Misuse):
    """A sync call in an async workflow, or the other way round."""

    code = "WRONG_COLOUR"


class CallNotAwaited(Misuse):
    """A workflow returned before a call of a step had ended; await every call."""

    code = "CALL_NOT_AWAITED"


class ParallelCalls(Misuse):
    """Two calls of one step run at once and cannot be told apart on replay."""

    code = "PARALLEL_CALLS"


class WaitInThread(Misuse):
    """A sync workflow can wait in its own thread only, not in one that it started."""

    code = "WAIT_IN_THREAD"


class SlotsAreHeld(Misuse):
    """A job that holds its slot waits for a child in the same queue; give the child another queue."""

    code = "SLOTS_ARE_HELD"


class DuplicateHandler(Misuse):
    """Two functions have the same name."""

    code = "DUPLICATE_HANDLER"


class AppBroken(TallyError):
    """The module raised while it was imported."""

    code = "APP_BROKEN"


class TxTooLong(TallyError):
    """The body of a transaction took more than its time and was rolled back."""

    code = "TX_TOO_LONG"
