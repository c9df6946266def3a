"""Exceptions that leave a workflow function early; a plain `except Exception` does not catch them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.store.api import Bundle


class Unwind(BaseException):
    """Leaves a workflow before its end: the lease is lost, the job is held, or the store is away.

    Not an `Exception`, so that a plain `except Exception` lets it pass. A function that catches it
    meets it again at its next call, and what the function returns then is not believed.
    """

    def __init__(self, why: str, bundle: Bundle | None, *, suspends: bool = False) -> None:
        """Carry the bundle that ends the segment, or None when nothing may be written any more."""
        super().__init__(why)
        self.bundle = bundle
        self.suspends = suspends


class Cancelled(BaseException):
    """The job was asked to end: raised at the first call that is not recorded.

    Not an `Exception`, so that only code that means it catches it. Steps may still be called while it is
    handled, until the grace ends.
    """


class Again(BaseException):
    """Leaves the function to begin the same job again with new arguments."""

    def __init__(self, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Carry the arguments of the next turn."""
        super().__init__("again")
        self.arguments = (args, kwargs)
