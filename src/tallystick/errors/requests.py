"""What clients meet over HTTP, and their servers: keys, scopes, limits of a request."""

from __future__ import annotations

from tallystick.errors.root import TallyError


class BadCallbackKeys(TallyError):
    """The secrets that sign callbacks are missing or cannot be used."""

    code = "BAD_CALLBACK_KEYS"
    exit_code = 4


class BadSignature(TallyError):
    """A webhook is not from the sender it names, or was sent long ago; refuse it and read nothing of it."""

    code = "BAD_SIGNATURE"
    exit_code = 4
    http_status = 401


class PublishFailed(TallyError):
    """A directive could not be handed to its service; `final` says that no other try could do it either.

    The message is for operators. Tenants read that the service `told`, and nothing of where it is.
    """

    code = "PUBLISH_FAILED"
    http_status = 502

    def __init__(
        self, message: str = "", *, final: bool = False, told: str = "could not be reached", **fields: object
    ) -> None:
        """Keep whether trying again can help, and what kind of failure it is."""
        super().__init__(message, final=final, **fields)
        self.final = final
        self.told = told


class RequestRefused(TallyError):
    """The request is not valid."""

    code = "REQUEST_REFUSED"
    http_status = 400


class NotKnown(RequestRefused):
    """No live key was sent; send Authorization: Bearer KID.SECRET."""

    code = "NOT_KNOWN"
    http_status = 401


class NotAllowed(RequestRefused):
    """This API key does not allow that."""

    code = "NOT_ALLOWED"
    http_status = 403


class CrossSite(RequestRefused):
    """A page of another site asked for this; browsers may not use this API."""

    code = "CROSS_SITE"
    http_status = 403


class NoSuchRoute(RequestRefused):
    """There is nothing at this address; /openapi.json lists what there is."""

    code = "NO_SUCH_ROUTE"
    http_status = 404


class WrongMethod(RequestRefused):
    """This address does not take that method."""

    code = "WRONG_METHOD"
    http_status = 405


class RequestTooSlow(RequestRefused):
    """The request did not arrive in time."""

    code = "REQUEST_TOO_SLOW"
    http_status = 408


class WrongMediaType(RequestRefused):
    """The body of a request is application/json, in UTF-8 and not compressed."""

    code = "WRONG_MEDIA_TYPE"
    http_status = 415


class WrongHost(RequestRefused):
    """This server does not accept that Host header; add the name with --host."""

    code = "WRONG_HOST"
    http_status = 421


class HeadersTooLarge(RequestRefused):
    """The headers of a request have more than 16 KiB together; send fewer or shorter ones."""

    code = "HEADERS_TOO_LARGE"
    http_status = 431


class TooManyInFlight(RequestRefused):
    """The tenant has as many jobs in flight as it may have; try again when some have ended."""

    code = "TOO_MANY_IN_FLIGHT"
    http_status = 429


class TooManyLogins(RequestRefused):
    """There were too many logins with wrong keys from this address; try again in a minute."""

    code = "TOO_MANY_LOGINS"
    http_status = 429


class FormStale(RequestRefused):
    """The form belongs to another session; open the page again and send it once more."""

    code = "FORM_STALE"
    http_status = 403
