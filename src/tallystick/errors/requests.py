"""What those meet who come over HTTP, and those who serve them: keys, scopes, limits of a request."""

from __future__ import annotations

from tallystick.errors.root import TallyError


class BadCallbackKeys(TallyError):
    """The secrets that sign callbacks are missing or cannot be used."""

    code = "BAD_CALLBACK_KEYS"
    exit_code = 4
