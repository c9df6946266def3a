"""What is kept of an error: data, never an object that could be brought back to life."""

from __future__ import annotations

import traceback
from typing import Self

import msgspec

from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, TRACEBACK_BYTES_MAX, clip_text
from tallystick.core.retry import error_names
from tallystick.store.values import StoredError


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error as it is stored: type, message, stable code, how many tries, and where it came from."""

    type: str
    message: str
    code: str
    tries: int = 1
    fields: dict[str, object] | None = None
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException, *, tries: int = 1, fields: dict[str, object] | None = None) -> Self:
        """Describe an error; long texts are cut."""
        return cls(
            type=type(error).__qualname__,
            message=clip_text(str(error), ERROR_TEXT_BYTES_MAX),
            code=str(getattr(error, "code", "") or type(error).__name__),
            tries=tries,
            fields=fields,
            trace=clip_text("".join(traceback.format_exception(error)), TRACEBACK_BYTES_MAX),
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a stored error."""
        return msgspec.json.decode(text, type=cls)

    def text(self) -> str:
        """Return the error as it is stored."""
        return msgspec.json.encode(self).decode()

    def stored(self) -> StoredError:
        """Return the error as the columns of a job keep it."""
        return StoredError(self.text(), self.code, self.message)

    def summary(self) -> dict[str, object]:
        """Return the short form for an event: no trace, no fields."""
        return {"type": self.type, "message": self.message, "code": self.code}


def names_of(error: BaseException) -> tuple[str, ...]:
    """Return the names by which a retry policy knows this error."""
    return error_names(type(error))
