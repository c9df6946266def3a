"""Keeps an error as plain data: type, message and traceback, never a pickled object."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Final, Self

import msgspec

from tallystick.core.json_forms.sealed import SEALED_WHY, is_sealed
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, TRACEBACK_BYTES_MAX, clip_text
from tallystick.core.retry import error_names
from tallystick.errors import PayloadSealed
from tallystick.store.api import StoredError

_STEP: Final = "tallystick_step"
_LINKS_MAX: Final = 100
CODE_BYTES_MAX: Final = 200


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error as it is stored: type, message, stable code, how many tries, and where it came from."""

    type: str
    message: str
    code: str
    tries: int = 1
    fields: dict[str, msgspec.Raw] | None = None
    args: list[object] | None = None
    trace: str = ""
    step: str = ""

    @classmethod
    def of(
        cls,
        error: BaseException,
        *,
        tries: int = 1,
        fields: dict[str, msgspec.Raw] | None = None,
        args: list[object] | None = None,
    ) -> Self:
        """Describe an error; long texts are cut. What it carries is given by the code that rebuilds it."""
        return cls(
            type=type(error).__qualname__,
            message=clip_text(_message_of(error), ERROR_TEXT_BYTES_MAX),
            code=clip_text(_code_of(error), CODE_BYTES_MAX),
            tries=tries,
            fields=fields,
            args=args,
            trace=clip_text(
                _told(error, lambda: "".join(traceback.format_exception(error))), TRACEBACK_BYTES_MAX
            ),
            step=failed_step(error),
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a stored error; of one that is still sealed only that."""
        if is_sealed(text):
            return cls(type="Sealed", message=f"its error is sealed: {SEALED_WHY}", code=PayloadSealed.code)
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


def name_step(error: BaseException, name: str, occurrence: int) -> None:
    """Let an error say which step of the workflow it came from."""
    error.__dict__[_STEP] = f"{name}#{occurrence}"


def failed_step(error: BaseException) -> str:
    """Return the step that an error, or what it was raised over, came from; empty when it was none."""
    link: BaseException | None = error
    for _ in range(_LINKS_MAX):
        if link is None:
            break
        if _STEP in link.__dict__:
            return str(link.__dict__[_STEP])
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return ""


def alone(error: BaseException) -> BaseException:
    """Return what a group of errors holds, if that is one: a task group raises even a single error in one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _message_of(error: BaseException) -> str:
    """Return what an error says; of a group what each of them says, which its own text hides."""
    if not isinstance(error, BaseExceptionGroup):
        return _told(error, lambda: str(error))
    each = "; ".join(f"{type(one).__qualname__}: {_message_of(one)}" for one in error.exceptions)
    return f"{_told(error, lambda: error.message)}: {each}"


def _told(error: BaseException, tell: Callable[[], str]) -> str:
    """Return what an error says of itself; that it cannot say it must not hide that it happened."""
    try:
        return tell()
    except Exception as worse:  # noqa: BLE001 (the user's own code, and its failure is what is reported)
        return f"<{type(error).__qualname__}, whose text cannot be had: {type(worse).__qualname__}>"


def _code_of(error: BaseException) -> str:
    """Return the stable code of an error: what it declares, if that can be one, or the name of its class."""
    try:
        code = getattr(error, "code", None)
    except Exception:  # noqa: BLE001 (as above)
        code = None
    declares = isinstance(code, str | int) and not isinstance(code, bool)
    return str(code) if declares and code != "" else type(error).__name__


def names_of(error: BaseException) -> tuple[str, ...]:
    """Return the names by which a retry policy knows this error."""
    return error_names(type(error))
