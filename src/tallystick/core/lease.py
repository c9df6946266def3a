"""How long leases last. `Picture.holds` judges which attempt holds one; every report passes it.

Instants and lengths are whole milliseconds.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.durations import duration_ms
from tallystick.defaults import CANCEL_GRACE

# The clock of the ACK starts when the message is out, the work lease when the ACK is in.
ACK_TIMEOUT_MS: Final = 30_000
WORK_LEASE_MS: Final = 900_000

# While a message is on its way out the lease covers every wait of the publish budget, and the tries.
PUBLISH_SLACK_MS: Final = 60_000

# How late a call of an effect may begin after its intent: its lease is longer than its time by this.
CALL_SLACK_MS: Final = 5_000

# A worker renews its leases so often that two heartbeats may be lost before the lease is.
HEARTBEATS_PER_LEASE: Final = 3

# What a running job has to clean up after it was asked to end, unless the canceller says otherwise.
CANCEL_GRACE_MS: Final = duration_ms(CANCEL_GRACE)
