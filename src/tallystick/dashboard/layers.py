"""What stands around the pages: headers of every answer, and refusals that a person can read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tallystick.dashboard.rendering import refusal
from tallystick.errors import TallyError

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer browsers would send `Origin: null` with forms, which the guard refuses.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PROBLEM: Final = "application/problem+json"


class Headed:
    """Adds the headers of every answer, and shows an error as a page."""

    def __init__(
        self, app: ASGIApp, answer_error: Callable[[Request, TallyError], Awaitable[Response]]
    ) -> None:
        """Stand around an app."""
        self._app = app
        self._answer_error = answer_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (k.encode(), v.encode())
                        for k, v in HEADERS.items()
                        if k.lower().encode() not in names
                    ),
                ]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except TallyError as error:
            response = await self._answer_error(Request(scope, receive), error)
            await response(scope, receive, sending)


class Readable:
    """Shows browsers as a page what was refused as data, before the pages or the API were reached."""

    def __init__(self, app: ASGIApp, below: str = "") -> None:
        """Stand around an app that has the pages below a path."""
        self._app = app
        self._below = below

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if not self._is_for_people(scope):
            await self._app(scope, receive, send)
            return
        parts: list[bytes] = []
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start" and _is_problem(message):
                status = message["status"]
                return
            if not status:
                await send(message)
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._page(scope, status, b"".join(parts))(scope, receive, send)

        await self._app(scope, receive, sending)

    def _is_for_people(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        path, below = scope["path"].removeprefix(scope.get("root_path", "")), self._below
        is_below = not below or path == below or path.startswith(f"{below}/")
        return is_below and "text/html" in Headers(scope=scope).get("accept", "")

    def _page(self, scope: Scope, status: int, body: bytes) -> Response:
        said: dict[str, Any] = msgspec.json.decode(body)
        text = str(said.get("detail") or "The server could not do this; its log says why.")
        response = refusal(f"{scope.get('root_path', '')}{self._below}", status, str(said["code"]), text)
        response.headers.update(HEADERS)
        return response


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type", "").startswith(_PROBLEM)
