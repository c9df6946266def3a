"""What every test can rely on: no settings leak in from the caller's shell, and no test has a deadline of its own."""

from __future__ import annotations

import os

from hypothesis import settings

for name in ("TALLY_URL", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(name, None)

# A busy machine must not fail a property, so an example has no deadline; pytest-timeout ends what hangs.
settings.register_profile("tallystick", deadline=None, print_blob=True)
settings.load_profile("tallystick")
