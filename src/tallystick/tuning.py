"""Whether this process uses the tuned parts or their plain twins.

Four parts are written for speed: waking threads, writing many rows per statement, the wire to PostgreSQL and
the cursor of claims. Each has a plain twin beside it that does the same thing in the obvious way. The
variable TALLYSTICK_PLAIN=1 selects the twins, so that a test can show that tuning changes nothing but time.
"""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "TALLYSTICK_PLAIN"


def is_plain() -> bool:
    """Tell whether plain twins are wanted; asked when a part is made, never on the way of a job."""
    return os.environ.get(VARIABLE) == "1"
