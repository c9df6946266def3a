"""What a database refuses. Nothing of the call became durable, but for one class that says otherwise."""

from __future__ import annotations

from tallystick.errors.root import TallyError


class StoreError(TallyError):
    """The store could not do this; nothing of it became durable."""

    code = "STORE_ERROR"
    exit_code = 5
    http_status = 503


class StoreMissing(StoreError):
    """There is no database there."""

    code = "STORE_MISSING"


class StoreReadOnly(StoreError):
    """The database cannot be written."""

    code = "STORE_READ_ONLY"


class StoreFull(StoreError):
    """The disk is full."""

    code = "STORE_FULL"


class StoreBusy(StoreError):
    """The database was locked by other writers for too long."""

    code = "STORE_BUSY"


class StoreCorrupt(StoreError):
    """This is not an intact Tallystick database."""

    code = "STORE_CORRUPT"


class StoreGone(StoreError):
    """The database was moved, deleted or replaced while it was open."""

    code = "STORE_GONE"


class StoreTooNew(StoreError):
    """The database was written by a newer Tallystick."""

    code = "STORE_TOO_NEW"


class StoreMisused(StoreError):
    """The store was used after it was closed, after a fork, or by a thread it was not lent to."""

    code = "STORE_MISUSED"
    exit_code = 1
    http_status = 500


class OutcomeUnknown(StoreError):
    """The server was lost before it said whether this became durable; look before you repeat it."""

    code = "OUTCOME_UNKNOWN"


class TwoLibraries(StoreError):
    """The same file is open through two SQLite libraries in one process."""

    code = "TWO_LIBRARIES"


class VulnerableSqlite(StoreError):
    """This SQLite is known to lose data."""

    code = "VULNERABLE_SQLITE"
