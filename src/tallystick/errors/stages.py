"""What Sequences, stages and their journals raise, and what a function of a stage may raise itself."""

from __future__ import annotations

from datetime import UTC, datetime

from tallystick.errors.root import TallyError


class SequenceFatal(TallyError):
    """A slot was asked for a move that the table does not list."""

    code = "SEQUENCE_FATAL"
    exit_code = 4
    http_status = 500

    def __init__(
        self, seq: int, prior: str, attempted: str, owner: str, *, at_ms: int, why: str = ""
    ) -> None:
        """Say which seq, where it stood, where it was asked to go, by which owner, and when (wall clock)."""
        self.seq = seq
        self.prior = prior
        self.attempted = attempted
        self.owner = owner
        self.at_ms = at_ms
        self.why = why
        when = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        super().__init__(
            f"seq {seq}: {prior} -> {attempted} is illegal (owner {owner or 'none'}, {when})"
            f"{': ' + why if why else ''}; the sequence stops here, find the caller that did this",
            seq=seq,
            prior=prior,
            attempted=attempted,
            owner=owner,
            at_ms=at_ms,
        )


class StageFault(TallyError):
    """An invariant of the stage is broken."""

    code = "STAGE_FAULT"
    exit_code = 1


class JournalError(TallyError):
    """The journal cannot be used."""

    code = "JOURNAL_ERROR"
    exit_code = 4
    http_status = 409


class JournalCorrupt(JournalError):
    """The journal says what no stage can have written."""

    code = "JOURNAL_CORRUPT"
    http_status = 500


class JournalBusy(JournalError):
    """Another stage has this journal open."""

    code = "JOURNAL_BUSY"


class JournalMismatch(JournalError):
    """The items or the stage are not those of the journal."""

    code = "JOURNAL_MISMATCH"


class SkipItem(TallyError):
    """Raise this to skip an item."""

    code = "SKIP_ITEM"


class CancelItem(TallyError):
    """Raise this to drop an item."""

    code = "CANCEL_ITEM"
