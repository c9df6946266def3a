"""What a store refuses to a worker: each reason is worth one line in the log, however often it comes."""

from __future__ import annotations

import logging
from typing import Final

from tallystick.errors import StoreCorrupt, StoreMissing, StoreReadOnly, StoreTooNew, TallyError

_log = logging.getLogger("tallystick.worker")

_KNOWN_MAX: Final = 100

# What is wrong with a store for good; everything else may pass, and is waited for.
_LASTING: Final = (StoreReadOnly, StoreCorrupt, StoreMissing)


class Reasons:
    """The errors that have been told of since it last went well."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        """Begin with none."""
        self._known: set[str] = set()

    def is_new(self, error: BaseException, about: str = "") -> bool:
        """Tell whether this is to be told: the same kind of error, in the same words, was not told before.

        >>> reasons = Reasons()
        >>> reasons.is_new(ValueError("a")), reasons.is_new(ValueError("a")), reasons.is_new(ValueError("b"))
        (True, False, True)
        """
        reason = f"{about} {type(error).__name__}: {error}"
        if reason in self._known:
            return False
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known.add(reason)
        return True

    def forget(self) -> None:
        """Note that it goes well again: what goes wrong next is news."""
        self._known.clear()


class Refusals:
    """The looks for work that could not be made."""

    def __init__(self) -> None:
        """Begin with none."""
        self._reasons = Reasons()
        # Of jobs, which may be refused while others are claimed.
        self._jobs = Reasons()
        self._has_looked = False
        # Whether the last look was not made, or none was.
        self.last = True
        self._barred: TallyError | None = None

    def note(self, error: BaseException) -> None:
        """Tell of a look that could not be made; it is made again in a moment."""
        self.last = True
        if isinstance(error, StoreTooNew) or (not self._has_looked and isinstance(error, _LASTING)):
            self._barred = error
        if self._reasons.is_new(error):
            _log.warning("worker: no job can be claimed: %s", error, extra={"action": "claim.failed"})

    def tell(self, job_id: str, error: TallyError) -> None:
        """Tell of a job that the database does not let be claimed, once."""
        if self._jobs.is_new(error, job_id):
            about = {
                "action": "claim.refused",
                "job_id": job_id,
                "statement": error.fields.get("statement", ""),
            }
            _log.error("job %s: it cannot be claimed, %s", job_id, error, extra=about)

    def end(self) -> None:
        """Note that a look was made."""
        self.last, self._has_looked, self._barred = False, True, None
        self._reasons.forget()

    def check(self) -> None:
        """Raise if no look can be made, for a reason that does not pass: this worker is of no use."""
        if self._barred is not None:
            raise self._barred
