"""What those meet who come over HTTP, and those who serve them: keys, scopes, limits of a request."""

from __future__ import annotations

from tallystick.errors.root import TallyError


class BadCallbackKeys(TallyError):
    """The secrets that sign callbacks are missing or cannot be used."""

    code = "BAD_CALLBACK_KEYS"
    exit_code = 4


class BadSignature(TallyError):
    """A webhook is not from who it says, or was sent long ago; refuse it and read nothing of it."""

    code = "BAD_SIGNATURE"
    exit_code = 4
    http_status = 401


class PublishFailed(TallyError):
    """A directive could not be handed to its service; `final` says that no other try could do it either."""

    code = "PUBLISH_FAILED"
    http_status = 502

    def __init__(self, message: str = "", *, final: bool = False, **fields: object) -> None:
        """Keep whether trying again can help."""
        super().__init__(message, final=final, **fields)
        self.final = final
