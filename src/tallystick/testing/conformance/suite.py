"""The whole suite in one class: `class TestMyStore(StoreConformance)` and a fixture named `subject`."""

from __future__ import annotations

import sys

import pytest

# Whoever reads a failure wants to see the values; pytest must know before it imports the tests.
_TESTS = (
    "answers births claims closers control drafts families loans machine primitives reservations retention "
    "suspending waiting"
)
_NAMES = [f"tallystick.testing.conformance.{name}" for name in _TESTS.split()]
pytest.register_assert_rewrite(*(name for name in _NAMES if name not in sys.modules))

from tallystick.testing.conformance.answers import Answers  # noqa: E402 (registered first)
from tallystick.testing.conformance.births import Births  # noqa: E402 (registered first)
from tallystick.testing.conformance.claims import Claims, Clocks, Reads  # noqa: E402 (registered first)
from tallystick.testing.conformance.closers import Closers  # noqa: E402 (registered first)
from tallystick.testing.conformance.control import Forks, Holds  # noqa: E402 (registered first)
from tallystick.testing.conformance.families import Families  # noqa: E402 (registered first)
from tallystick.testing.conformance.loans import LentTransactions, UsersTransactions  # noqa: E402 (registered first)
from tallystick.testing.conformance.primitives import BatchesAndBundles, WhatBecomesDurable, WhatIsRefused  # noqa: E402 (registered first)
from tallystick.testing.conformance.reservations import Reservations  # noqa: E402 (registered first)
from tallystick.testing.conformance.retention import Retention  # noqa: E402 (registered first)
from tallystick.testing.conformance.suspending import TagsAndOrphans, Waits  # noqa: E402 (registered first)
from tallystick.testing.conformance.waiting import LateReports, WhoActs  # noqa: E402 (registered first)


class StoreConformance(
    WhatBecomesDurable,
    WhatIsRefused,
    BatchesAndBundles,
    Reservations,
    Births,
    Claims,
    Clocks,
    Reads,
    Closers,
    WhoActs,
    LateReports,
    Holds,
    Forks,
    Families,
    UsersTransactions,
    LentTransactions,
    Retention,
    Waits,
    Answers,
    TagsAndOrphans,
):
    """Every promise of `store/api.py`."""
