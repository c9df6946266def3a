"""The version of this package; a test compares it with the one that is installed."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
