"""Every error a user can meet: one tree, stable codes, fields instead of prose.

TallyError
├── StateTransitionError      a move that the lifecycle does not list
├── LedgerError
│   ├── LedgerCorrupt         digits that no history can have written
│   └── LedgerCeiling         a counter is full; the next entry must escalate
├── SemaphoreUnderflow        more obligations closed than were open
├── BadInput                  a value that cannot be accepted as it is
│   ├── NotCanonical          a value that has no canonical JSON form
│   ├── BadJson               bytes that are not strict JSON
│   ├── PayloadTooLarge       more bytes than the named limit allows
│   ├── BadName               an identifier or key that breaks the naming rule
│   └── BadDuration           a duration that cannot be read or is out of range
└── NoRetry                   raised by a handler: trying again cannot help

A class carries its stable `code`, the exit code of the command line and the HTTP status, so that
no surface needs a mapping table. The first line of a class docstring is its default message.
"""

from __future__ import annotations


class TallyError(Exception):
    """Tallystick refused to go on."""

    code = "TALLY_ERROR"
    exit_code = 1
    http_status = 500

    def __init__(self, message: str = "", **fields: object) -> None:
        """Keep the fields, so that a program can read what a person reads in the message."""
        self.message = message or (type(self).__doc__ or self.code).splitlines()[0]
        self.fields = fields
        super().__init__(self.message)

    def as_dict(self) -> dict[str, object]:
        """Return the error as data, the way `--json` and HTTP show it."""
        return {"code": self.code, "message": self.message, **self.fields}


class StateTransitionError(TallyError):
    """This lifecycle has no such move."""

    code = "ILLEGAL_TRANSITION"
    exit_code = 4
    http_status = 409

    def __init__(
        self,
        machine: str,
        state: str,
        attempted: str,
        *,
        legal: tuple[str, ...] = (),
        entity: str = "",
        owner: str = "",
        at: float | None = None,
    ) -> None:
        """Say what was tried, on what, by whom, when, and what would have been legal."""
        self.machine = machine
        self.entity = entity
        self.state = state
        self.attempted = attempted
        self.owner = owner
        self.at = at
        self.legal = legal
        subject = f"{machine} {entity}".rstrip()
        moves = ", ".join(legal) if legal else "none, the state is final"
        super().__init__(
            f"{subject} is {state} and cannot {attempted}; legal from here: {moves}",
            machine=machine,
            entity=entity,
            state=state,
            attempted=attempted,
            owner=owner,
            at=at,
            legal=list(legal),
        )


class LedgerError(TallyError):
    """A fifteen-digit ledger cannot be used as it is."""

    code = "LEDGER_ERROR"
    exit_code = 4
    http_status = 409


class LedgerCorrupt(LedgerError):
    """These digits cannot have been written by any legal history."""

    code = "LEDGER_CORRUPT"
    http_status = 500


class LedgerCeiling(LedgerError):
    """A counter of the ledger is full; the activity must fail fast and escalate."""

    code = "LEDGER_CEILING"


class SemaphoreUnderflow(TallyError):
    """The semaphore would fall below zero; nothing was written."""

    code = "SEMAPHORE_UNDERFLOW"
    http_status = 409


class BadInput(TallyError):
    """A value cannot be accepted as it is."""

    code = "BAD_INPUT"
    exit_code = 4
    http_status = 422


class NotCanonical(BadInput):
    """This value has no canonical JSON form."""

    code = "NOT_CANONICAL"


class BadJson(BadInput):
    """These bytes are not strict JSON."""

    code = "BAD_JSON"
    http_status = 400


class PayloadTooLarge(BadInput):
    """There are more bytes than the limit allows."""

    code = "PAYLOAD_TOO_LARGE"
    http_status = 413


class BadName(BadInput):
    """This name breaks the naming rule."""

    code = "BAD_NAME"


class BadDuration(BadInput):
    """This is not a duration."""

    code = "BAD_DURATION"


class NoRetry(TallyError):
    """The handler says that trying again cannot help."""

    code = "NO_RETRY"
