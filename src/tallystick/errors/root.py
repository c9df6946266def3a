"""What every error of ours is: a code that never changes, an exit code, an HTTP status, and fields."""

from __future__ import annotations


class TallyError(Exception):
    """Tallystick refused to go on."""

    __module__ = "tallystick.errors"
    code = "TALLY_ERROR"
    exit_code = 1
    http_status = 500

    def __init_subclass__(cls) -> None:
        """Give an error of ours its public name, whichever file it is in: policies and tracebacks say it."""
        super().__init_subclass__()
        if cls.__module__.startswith("tallystick.errors."):
            cls.__module__ = "tallystick.errors"

    def __init__(self, message: str = "", **fields: object) -> None:
        """Keep the fields, so that a program can read what a person reads in the message."""
        self.message = message or (type(self).__doc__ or self.code).splitlines()[0]
        self.fields = fields
        super().__init__(self.message)

    def as_dict(self) -> dict[str, object]:
        """Return the error as data, the way `--json` and HTTP show it."""
        return {"code": self.code, "message": self.message, **self.fields}


class ExtraMissing(TallyError):
    """A part of Tallystick needs packages that are not installed."""

    code = "EXTRA_MISSING"

    def __init__(self, what: str, extra: str) -> None:
        """Name the part, and the extra that brings what it needs."""
        super().__init__(
            f"{what} needs more packages: pip install 'tallystick[{extra}]'", what=what, extra=extra
        )

    @staticmethod
    def explains(error: ImportError, *packages: str) -> bool:
        """Tell whether one of these packages is missing; any other error is to be shown as it is.

        >>> ExtraMissing.explains(ModuleNotFoundError(name="psycopg.rows"), "psycopg")
        True
        >>> ExtraMissing.explains(ImportError("no pq wrapper", name="psycopg"), "psycopg")
        False
        """
        return isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in packages


class InvariantBroken(TallyError):
    """The books do not balance; please report this."""

    code = "INVARIANT_BROKEN"


class ChangeRefused(InvariantBroken):
    """The database refused a change that its rules do not allow; nothing of it was written."""

    code = "CHANGE_REFUSED"
