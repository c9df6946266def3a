"""The dashboard as an ASGI app: behind the guard of the API, with session and scope checked first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from tallystick.app.remote.api_keys import Keyring
from tallystick.core.remote.keys import ALL_TENANTS, SCOPES, WORK
from tallystick.dashboard import static_files
from tallystick.dashboard.layers import Headed, Readable
from tallystick.dashboard.pages.live import stream
from tallystick.dashboard.pages.table import PLACES, Place
from tallystick.dashboard.rendering import Renderer, packed
from tallystick.dashboard.sessions import SESSION_SECONDS, Sessions
from tallystick.dashboard.visits import FORM_BYTES_MAX, Visit, read_form
from tallystick.errors import NoSuchRoute, NotAllowed, TallyError
from tallystick.http.calls import read_some
from tallystick.http.guard import LOOPBACK_NAMES, Guard
from tallystick.http.news import News

if TYPE_CHECKING:
    from tallystick.app.api.tally import Tally

COOKIE: Final = "tallystick_session"


class Dashboard:
    """The pages of one Tally."""

    def __init__(
        self,
        app: Tally,
        *,
        hosts: Iterable[str],
        keyring: Keyring | None = None,
        news: News | None = None,
        secure: bool = False,
        runs_root: str | None = None,
    ) -> None:
        """Open the store; a keyring and a bell are shared with the API that stands beside it."""
        runtime = app.runtime()
        self.app = app
        self.keyring = keyring or Keyring(runtime.store)
        self.sessions = Sessions(self.keyring, runtime.ids, runtime.clock)
        # One of its own does not listen to the bell of the store, which a worker of this process may have:
        # streams look at the pulse of the store a few times per second anyway.
        self.news = news or News(runtime.store)
        self._owns_news = news is None
        self._secure = secure
        self._runs_root = runs_root
        self._renderer = Renderer()
        routes = [
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/login/{secret}", self._by_link, methods=["GET"]),
            Route("/static/{path:path}", self._static, methods=["GET"]),
            Route("/live", self._live, methods=["GET"]),
        ]
        routes += [
            Route(place.path, self._answering(place), methods=[place.method], name=place.name)
            for place in PLACES
        ]
        router = Router(routes, redirect_slashes=False, default=self._nothing_there)
        self._guarded: ASGIApp = Readable(Guard(Headed(router, self._answer_error), hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guarded(scope, receive, send)

    def link(self) -> str:
        """Return the path of a link that logs its first user in as an operator, while this process lives."""
        scopes = [scope for scope in SCOPES if scope != WORK]
        key = self.keyring.make_own(self.app.runtime().ids, ALL_TENANTS, scopes, ())
        return f"/login/{self.sessions.link(key.partition('.')[0])}"

    def stop(self) -> None:
        """Let those go who wait for news."""
        if self._owns_news:
            self.news.close()

    def _answering(self, place: Place) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit = await asyncio.to_thread(self._visit, request)
            if visit is None:
                return self._to_login(request)
            if place.operator and not visit.is_operator:
                raise NotAllowed("this page is for operators: it needs a key with the scope admin")
            if place.scope and not place.operator:
                visit.need(place.scope)
            if request.method == "POST":
                visit.check_form(await _read(request))
            shown = await asyncio.to_thread(place.handler, visit)
            return packed(request, self._renderer.response(visit, place, shown))

        return answer

    def _visit(self, request: Request) -> Visit | None:
        found = self.sessions.find(request.cookies.get(COOKIE, ""))
        if found is None:
            return None
        session, key = found
        return Visit(request, self.app, session, key, self._runs_root)

    async def _login(self, request: Request) -> Response:
        base = _base(request)
        if request.method == "GET":
            return self._renderer.login(base, "")
        form = read_form(await _read(request))
        opened = await asyncio.to_thread(self.sessions.by_key, form.get("key", "").strip(), _client(request))
        if opened is None:
            return self._renderer.login(base, "That key opens nothing here.", 401)
        return self._logged_in(request, opened)

    async def _by_link(self, request: Request) -> Response:
        secret = request.path_params["secret"]
        opened = await asyncio.to_thread(self.sessions.by_link, secret, _client(request))
        if opened is None:
            text = "That link was used already, or is too old. Log in with a key, or start the server again."
            return self._renderer.login(_base(request), text, 401)
        return self._logged_in(request, opened)

    def _logged_in(self, request: Request, identifier: str) -> Response:
        base = _base(request)
        response = RedirectResponse(f"{base}/", 303)
        response.set_cookie(
            COOKIE,
            identifier,
            max_age=SESSION_SECONDS,
            path=f"{base}/",
            httponly=True,
            samesite="strict",
            secure=self._secure or request.url.scheme == "https",
        )
        return response

    def _to_login(self, request: Request) -> Response:
        base = _base(request)
        if request.headers.get("hx-request"):
            return Response(b"", 200, {"HX-Redirect": f"{base}/login"})
        return RedirectResponse(f"{base}/login", 303)

    async def _static(self, request: Request) -> Response:
        file = static_files.answer(request, request.path_params["path"])
        if file is None:
            raise NoSuchRoute
        return file

    async def _live(self, request: Request) -> Response:
        if await asyncio.to_thread(self._visit, request) is None:
            return Response(b"", HTTPStatus.UNAUTHORIZED)
        return stream(request, self.news, self.app.runtime().store, lambda: self._visit(request) is not None)

    async def _answer_error(self, request: Request, error: TallyError) -> Response:
        visit = await asyncio.to_thread(self._visit, request)
        return self._renderer.error(_base(request), visit, error)

    async def _nothing_there(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        raise NoSuchRoute


def dashboard_app(
    app: Tally,
    *,
    hosts: Iterable[str] = LOOPBACK_NAMES,
    secure: bool = False,
    runs_root: str | None = None,
) -> Dashboard:
    """Return the dashboard of a Tally, to mount in another ASGI app or to serve.

    It answers under the names in `hosts` alone. `secure` says that browsers come by TLS, though the server
    does not see it. `runs_root` is the folder of the runs that it shows.
    """
    return Dashboard(app, hosts=hosts, secure=secure, runs_root=runs_root)


async def _read(request: Request) -> bytes:
    body, refused = await read_some(request, FORM_BYTES_MAX, is_form=True)
    if refused is not None:
        raise refused
    return body


def _base(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _client(request: Request) -> str:
    return request.client.host if request.client else ""
