"""What a user says about trying again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from tallystick.core.digits import ActivityLedger
from tallystick.core.durations import duration_ms
from tallystick.core.retry import RetryPolicy
from tallystick.defaults import RETRY_FIRST, RETRY_LONGEST
from tallystick.errors import BadInput

Duration = str | float | timedelta
When = Duration | datetime

# Every recorded failure of a step is an entry of its leg 1.
TRIES_MAX: Final = ActivityLedger.FIELDS[0].top


class Retry:
    """How often, how soon and for which errors something is tried again.

    `Retry(5)` tries five times in all, one second apart at first and twice as long each time. `on` limits it
    to these error classes; `Fatal`, and errors of ours that a second try cannot mend, are never tried again.
    """

    def __init__(
        self,
        tries: int = 3,
        *,
        first: Duration = RETRY_FIRST,
        longest: Duration = RETRY_LONGEST,
        factor: float = 2.0,
        on: Sequence[type[BaseException]] = (Exception,),
    ) -> None:
        """Check the numbers now, not when the first error comes."""
        if isinstance(on, type):
            raise BadInput(f"on is a list of error classes: write on=[{on.__name__}]")
        if tries > TRIES_MAX:
            raise BadInput(f"a step is tried at most {TRIES_MAX} times, not {tries}: no more can be counted")
        self.policy: Final = RetryPolicy(
            attempts_max=tries,
            base_ms=duration_ms(first),
            cap_ms=max(duration_ms(longest), duration_ms(first)),
            factor=factor,
            retryable=frozenset(f"{error.__module__}.{error.__qualname__}" for error in on),
            final=FINAL_ERRORS,
        )


FINAL_ERRORS: Final = frozenset(
    f"tallystick.errors.{name}" for name in ("NoRetry", "BadInput", "OutsideWorkflow", "StepFailed")
)
ONCE: Final = Retry(1)
