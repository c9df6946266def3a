"""The emulator of a test run: installed by its script if that was not done before, started once."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tallystick.ids import SystemIds
from tallystick.testing.azurite_server import Azurite, NoAzurite, find_azurite, shared_azurite

ROOT = Path(__file__).parents[2]


def the_azurite(folder: Path) -> Azurite:
    """Return the emulator of this run; without node and npm these tests fail, and say so."""
    try:
        find_azurite()
    except NoAzurite:
        subprocess.run([ROOT / "scripts" / "azurite"], check=True)
    return shared_azurite(folder)


def fresh_prefix() -> str:
    """Return how the tables of one test are called."""
    return f"t{SystemIds().token()[:16]}"
