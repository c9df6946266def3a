"""What every test can rely on: no setting leaks in from the shell, and a busy machine fails no property."""

from __future__ import annotations

import os

from hypothesis import settings

for name in ("TALLY_URL", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(name, None)

# An example has no deadline of its own; pytest-timeout ends what hangs.
settings.register_profile("tallystick", deadline=None, print_blob=True)
settings.load_profile("tallystick")
