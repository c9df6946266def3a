"""The whole suite in one class: `class TestMyStore(StoreConformance)` and a fixture named `subject`."""

from __future__ import annotations

import sys

import pytest

# A person who reads a failure wants to see the values; pytest must know before it imports the tests.
_PROMISES = (
    "answers claims closers control families loans primitives protocol_ways protocols "
    "reservations retention submit_many suspending trees waiting"
)
_HERE = "tallystick.testing.conformance"
_NAMES = [*(f"{_HERE}.promises.{name}" for name in _PROMISES.split())]
_NAMES += [
    f"{_HERE}.{name}"
    for name in (
        "drafts",
        "effects",
        "keys",
        "machine",
        "protocol_holds",
        "protocol_runs",
        "searching",
        "watching",
    )
]
pytest.register_assert_rewrite(*(name for name in _NAMES if name not in sys.modules))

from tallystick.testing.conformance.effects import EffectPromises  # noqa: E402 (registered first)
from tallystick.testing.conformance.keys import Keys  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.answers import AnswerPromises  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.claims import ClaimPromises, Clocks, ReadPromises  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.closers import Closers  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.control import Forks, Holds  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.families import Families  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.loans import LentTransactions, UsersTransactions  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.primitives import (  # noqa: E402 (registered first)
    BatchesAndBundles,
    WhatBecomesDurable,
    WhatIsRefused,
)
from tallystick.testing.conformance.promises.protocol_ways import (  # noqa: E402 (registered first)
    ProtocolBatches,
    ProtocolCancelling,
    ProtocolOrders,
    ProtocolPublishing,
)
from tallystick.testing.conformance.promises.protocols import ProtocolCallbacks, ProtocolRows  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.reservations import Reservations  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.retention import Retention  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.submit_many import SubmitMany  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.suspending import TagsAndOrphans, Waits  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.trees import Deadlines, Trees  # noqa: E402 (registered first)
from tallystick.testing.conformance.promises.waiting import LateReports, WhoActs  # noqa: E402 (registered first)
from tallystick.testing.conformance.protocol_holds import ProtocolHolds  # noqa: E402 (registered first)
from tallystick.testing.conformance.searching import Searching  # noqa: E402 (registered first)
from tallystick.testing.conformance.watching import Watching  # noqa: E402 (registered first)


class ProtocolConformance(
    Keys,
    ProtocolRows,
    ProtocolCallbacks,
    ProtocolPublishing,
    ProtocolCancelling,
    ProtocolBatches,
    ProtocolOrders,
):
    """The promises of a store with the capability `Protocols`, whatever else it does."""


class StoreConformance(
    WhatBecomesDurable,
    WhatIsRefused,
    BatchesAndBundles,
    Reservations,
    SubmitMany,
    ClaimPromises,
    Clocks,
    ReadPromises,
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
    AnswerPromises,
    TagsAndOrphans,
    EffectPromises,
    ProtocolConformance,
    ProtocolHolds,
    Trees,
    Deadlines,
    Searching,
    Watching,
):
    """Every promise of `store/api.py`."""
