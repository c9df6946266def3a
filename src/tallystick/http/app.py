"""The ASGI app: each route of the table, behind the guard, with its key or token checked before all else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from tallystick.core.remote.keys import ADMIN, ApiKey
from tallystick.defaults import IN_FLIGHT_MAX
from tallystick.errors import NoSuchRoute, NotAllowed, NotKnown, WrongMethod
from tallystick.http.api import Api
from tallystick.http.calls import Call, bearer, read_body, read_some
from tallystick.http.guard import LOOPBACK_NAMES, Guard
from tallystick.http.openapi import DOCUMENT, METRICS, document
from tallystick.http.problems import problem
from tallystick.http.routes import ENDPOINTS, ApiRoute
from tallystick.watch import exposition

if TYPE_CHECKING:
    from tallystick.app.api.tally import Tally

Answering: TypeAlias = Callable[[Request], Awaitable[Response]]

_encode: Final = msgspec.json.Encoder().encode


class HttpApp:
    """The HTTP API of one Tally as an ASGI app."""

    def __init__(
        self,
        app: Tally,
        *,
        hosts: Iterable[str],
        in_flight_max: int,
        sweeps: bool,
        open_docs: bool,
        open_metrics: bool,
    ) -> None:
        """Open the store; nothing is answered before the first request."""
        self._open_metrics = open_metrics
        self.api = Api(app, in_flight_max=in_flight_max, sweeps=sweeps, open_docs=open_docs)
        answers: dict[str, dict[str, Answering]] = {
            DOCUMENT: {"GET": self._document},
            METRICS: {"GET": self._metrics},
        }
        for endpoint in ENDPOINTS:
            answering = self._callback(endpoint) if endpoint.reporter else self._answer(endpoint)
            answers.setdefault(endpoint.path, {})[endpoint.method] = answering
        routes = [Route(_as_route(path), _ByMethod(taken)) for path, taken in answers.items()]
        self._router = Router(routes, redirect_slashes=False, default=_no_route, lifespan=self._lifespan)
        self._guarded: ASGIApp = Guard(self._router, hosts)
        # Made when it is first asked for: it stands on a package of its own.
        self._series: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guarded(scope, receive, send)

    def mount(self, path: str, app: ASGIApp, around: Callable[[ASGIApp], ASGIApp]) -> None:
        """Let another app answer below a path, and at the root lead there; `around` sees all answers."""
        self._guarded = around(self._guarded)
        self._router.routes.append(Mount(path, app))
        self._router.routes.append(Route("/", lambda _request: RedirectResponse(f"{path}/", 303)))

    @asynccontextmanager
    async def _lifespan(self, _router: Router) -> AsyncIterator[None]:
        self.api.begin()
        try:
            yield
        finally:
            await self.api.stop()

    def _answer(self, endpoint: ApiRoute) -> Answering:
        async def answer(request: Request) -> Response:
            self.api.begin()
            key: ApiKey | None = None
            if endpoint.scope is not None:
                key = await self._key(request)
                if not (key.allows(endpoint.scope) or (endpoint.or_scope and key.allows(endpoint.or_scope))):
                    raise NotAllowed(f"this key has no scope {endpoint.scope}", scope=endpoint.scope)
            body = await read_body(request, endpoint.bytes_max)
            assert endpoint.handler is not None
            status, said = await endpoint.handler(self.api, Call(request, body, key))
            return Response(_encode(said), status, media_type="application/json")

        return answer

    def _callback(self, endpoint: ApiRoute) -> Answering:
        async def answer(request: Request) -> Response:
            self.api.begin()
            token = bearer(request)
            if token is None or not self.api.is_live(token):
                return _unknown()
            body, refused = await read_some(request, endpoint.bytes_max)
            assert endpoint.reporter is not None
            try:
                if refused is not None:
                    self.api.check_bearer(token, body)
                    raise refused
                status, said = await endpoint.reporter(self.api, body, token)
            except NotKnown:
                return _unknown()
            return Response(_encode(said), status, media_type="application/json")

        return answer

    async def _key(self, request: Request) -> ApiKey:
        text = bearer(request)
        key = None if text is None else await asyncio.to_thread(self.api.keyring.opened_by, text)
        if key is None:
            raise NotKnown
        return key

    async def _document(self, request: Request) -> Response:
        if not self.api.open_docs:
            await self._key(request)
        return Response(_encode(document()), media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        """Answer with the series of the store: of all tenants, so that a key must be an operator's."""
        if not self._open_metrics and not (await self._key(request)).allows(ADMIN):
            raise NotAllowed(f"this key has no scope {ADMIN}", scope=ADMIN)
        runtime = self.api.runtime
        if self._series is None:
            self._series = exposition().StoreSeries(runtime.store, runtime.clock)
        text = await asyncio.to_thread(exposition().text_of, self._series)
        return Response(text, media_type="text/plain; version=0.0.4")


def http_app(
    app: Tally,
    *,
    hosts: Iterable[str] = LOOPBACK_NAMES,
    in_flight_max: int = IN_FLIGHT_MAX,
    sweeps: bool = False,
    open_docs: bool = False,
    open_metrics: bool = False,
) -> HttpApp:
    """Return the HTTP API of a Tally, to serve or to mount in another app.

    It answers under the names in `hosts` alone. With `sweeps` it looks after remote steps whose time is over,
    as workers of an app with protocols do. With `open_docs` the OpenAPI document needs no key, and with
    `open_metrics` the series of all tenants need none.
    """
    return HttpApp(
        app,
        hosts=hosts,
        in_flight_max=in_flight_max,
        sweeps=sweeps,
        open_docs=open_docs,
        open_metrics=open_metrics,
    )


def _unknown() -> Response:
    """Return the answer to a bearer without a good token: it learns nothing."""
    return Response(b"", NotKnown.http_status, {"WWW-Authenticate": "Bearer"})


def _as_route(path: str) -> str:
    """Return a path for the router: the identifier of a directive of a workflow has a slash in it."""
    return path.replace("{outbox_id}", "{outbox_id:path}")


async def _no_route(scope: Scope, receive: Receive, send: Send) -> None:
    await problem(NoSuchRoute())(scope, receive, send)


class _ByMethod:
    """One address: each of its methods has its answer, and every other one is refused."""

    def __init__(self, answers: Mapping[str, Answering]) -> None:
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = self._answers.get(scope["method"])
        if answering is None:
            response = problem(WrongMethod(), {"Allow": ", ".join(sorted(self._answers))})
        else:
            response = await answering(Request(scope, receive))
        await response(scope, receive, send)
