"""What the rules refuse: a move that no table lists, digits that no history can have written."""

from __future__ import annotations

from tallystick.errors.root import TallyError


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
        """Say what was tried, on what, by which owner, when, and what would have been legal."""
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
    """A part of this job was entered as often as can be counted; the job fails."""

    code = "LEDGER_CEILING"


class SemaphoreUnderflow(TallyError):
    """More was answered than was open; nothing was written."""

    code = "SEMAPHORE_UNDERFLOW"
    http_status = 409
