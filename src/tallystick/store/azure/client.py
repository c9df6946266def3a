"""Requests on their way to the service: one connection pool and loop for all of them.

A request without an answer is sent again, and so is one that the service was too busy for; the verbs know
their own writes. The library itself repeats nothing.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar, assert_never

from aiohttp import ClientSession, TCPConnector
from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    IncompleteReadError,
    ResourceExistsError,
    ServiceResponseError,
)
from azure.core.pipeline.transport import AioHttpTransport
from azure.data.tables import EdmType, EntityProperty, UpdateMode

from tallystick.errors import StoreBusy, StoreError, StoreMissing, StoreMisused, TallyError
from tallystick.store.api import Outcome
from tallystick.store.azure.address import AzureAddress, connected, right_of
from tallystick.store.azure.keys import TABLES
from tallystick.store.azure.requests import (
    Asking,
    Drop,
    Find,
    Get,
    Put,
    Reply,
    Request,
    Row,
    ServiceRefusal,
    Together,
    Value,
    Wrote,
)

T = TypeVar("T")

AT_ONCE_MAX: Final = 64
"""How many requests of one process are on their way at the same time."""

PAGE_ROWS_MAX: Final = 1_000
SENT_MAX: Final = 8
"""How often a request is sent, at most; the pauses in between come to some 25 seconds."""

_PAUSE_SECONDS: Final = 0.2
_PAUSE_SECONDS_MAX: Final = 10.0
_ANSWER_SECONDS: Final = 30
_REFUSALS: Final = {404: ServiceRefusal.MISSING, 409: ServiceRefusal.EXISTS, 412: ServiceRefusal.CHANGED}
_BUSY: Final = frozenset({408, 429, 500, 502, 503, 504})


class Carrier(Protocol):
    """Who carries the requests of verbs: the client below, or a test's own."""

    address: AzureAddress
    requests: int
    """How many requests were sent."""

    def ask(self, asking: Asking[T]) -> T:
        """Carry the requests of a verb."""
        ...

    def ask_all(self, askings: Sequence[Asking[T]]) -> list[T | BaseException]:
        """Carry the requests of verbs side by side; what one raises is its own answer."""
        ...

    def create(self) -> None:
        """Make the tables that are not there."""
        ...

    def close(self) -> None:
        """Give back connections and threads."""
        ...


def told(outcome: Outcome | BaseException) -> Outcome | BaseException:
    """Return what became of a request; what no rule expects is an error of the store."""
    if not isinstance(outcome, BaseException) or isinstance(outcome, TallyError):
        return outcome
    error = StoreError(f"Azure Tables: {type(outcome).__name__}: {outcome}")
    error.__cause__ = outcome
    return error


def asked_together(carrier: Carrier, askings: Sequence[Asking[T]]) -> list[T]:
    """Carry reads side by side; if one fails, all do."""
    answers: list[T] = []
    for answer in carrier.ask_all(askings):
        if isinstance(answer, BaseException):
            raise told(answer)  # type: ignore[misc]  # an error is told as one
        answers.append(answer)
    return answers


class _Transport(AioHttpTransport):  # type: ignore[misc]  # it is optional there, so without a type
    """The library's own; it stumbles further up over half of an answer, which is none."""

    async def send(self, *about: Any, **more: Any) -> Any:  # noqa: ANN401 (as the library has it)
        """Send a request."""
        try:
            return await super().send(*about, **more)
        except IncompleteReadError as torn:
            raise ServiceResponseError(str(torn)) from torn


class Client:
    """The service at one address; called from any thread."""

    def __init__(self, address: AzureAddress, credential: object | None = None) -> None:
        """Start the loop; nothing is sent yet. Without a credential the environment is asked for one."""
        self.address = address
        self._pid = os.getpid()
        self.requests = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tally-azure", daemon=True)
        self._thread.start()
        self._closed = False
        try:
            self._service, self._tables, self._room, self._owned = self.run(self._connect(credential))
        except BaseException:
            self._end()
            raise

    async def _connect(
        self, credential: object | None
    ) -> tuple[Any, dict[str, Any], asyncio.Semaphore, object | None]:
        pool = ClientSession(connector=TCPConnector(limit=AT_ONCE_MAX))
        transport = _Transport(session=pool, session_owner=True)
        options = {"retry_total": 0, "connection_timeout": 5, "read_timeout": _ANSWER_SECONDS}
        try:
            right = credential or right_of()
            service = connected(self.address, {**options, "transport": transport}, right)
        except BaseException:
            await pool.close()
            raise
        tables = {name: service.get_table_client(f"{self.address.prefix}{name}") for name in TABLES}
        return service, tables, asyncio.Semaphore(AT_ONCE_MAX), right if credential is None else None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the loop do something, and wait for it."""
        if os.getpid() != self._pid:
            work.close()
            raise StoreMisused("this Tally was used before a fork; make one in the child process instead")
        if self._closed:
            work.close()
            raise StoreMisused("this Tally is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def ask(self, asking: Asking[T]) -> T:
        """Carry the requests of a verb."""
        return self.run(self.carry(asking))

    def ask_all(self, askings: Sequence[Asking[T]]) -> list[T | BaseException]:
        """Carry the requests of verbs side by side; what one raises is its own answer."""

        async def gathered() -> list[T | BaseException]:
            return await asyncio.gather(*map(self.carry, askings), return_exceptions=True)

        return self.run(gathered())

    async def carry(self, asking: Asking[T]) -> T:
        """Carry the requests of a verb, on the loop."""
        reply: Reply = None
        try:
            while True:
                reply = await self.send(asking.send(reply))
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]  # a generator of T returns one
        finally:
            asking.close()

    async def send(self, request: Request) -> Reply:
        """Send a request until it is answered, some times."""
        try:
            return await self._answered(partial(self._send, request))
        except HttpResponseError as error:
            return _refusal(request, error.status_code, _code(error))

    async def _answered(self, once: Callable[[], Awaitable[T]]) -> T:
        """Ask the service until it answers, some times; what it refuses is raised."""
        pause, why = _PAUSE_SECONDS, ""
        for time in range(1, SENT_MAX + 1):
            try:
                async with self._room:
                    self.requests += 1
                    return await once()
            except HttpResponseError as error:
                if error.status_code not in _BUSY and not isinstance(error, IncompleteReadError):
                    raise
                why, rest = _code(error), _told_to_rest(error)
            except AzureError as error:
                why, rest = type(error).__name__, 0.0
            if time < SENT_MAX:
                await asyncio.sleep(max(pause, rest))
                pause = min(2 * pause, _PAUSE_SECONDS_MAX)
        raise StoreBusy(f"{self.address.url}: no answer after {SENT_MAX} tries: {why}", url=self.address.url)

    async def _send(self, request: Request) -> Reply:
        match request:
            case Get():
                found = await self._tables[request.table].get_entity(request.pk, request.rk)
                return _row(found)
            case Find():
                return await self._find(request)
            case Put(etag=None):
                made = await self._tables[request.table].create_entity(_entity(request))
                return Wrote((made["etag"],))
            case Put():
                made = await self._tables[request.table].update_entity(_entity(request), **_guard(request))
                return Wrote((made["etag"],))
            case Drop():
                await self._tables[request.table].delete_entity(request.pk, request.rk)
                return Wrote(())
            case Together():
                table = self._tables[request.writes[0].table]
                made = await table.submit_transaction([_operation(each) for each in request.writes])
                puts = zip(request.writes, made, strict=True)
                return Wrote(tuple(done["etag"] for each, done in puts if isinstance(each, Put)))
            case _:
                assert_never(request)

    async def _find(self, request: Find) -> list[Row]:
        bounds = (
            ("PartitionKey", "eq" if request.pk_below is None else "ge", request.pk),
            ("PartitionKey", "lt", request.pk_below),
            ("RowKey", "ge", request.low or None),
            ("RowKey", "lt", request.below),
            *request.where,
        )
        asked = [
            f"{name} {compared} @v{at}"
            for at, (name, compared, value) in enumerate(bounds)
            if value is not None
        ]
        values = {f"v{at}": value for at, (*_about, value) in enumerate(bounds)}
        page = PAGE_ROWS_MAX if request.limit is None else min(request.limit, PAGE_ROWS_MAX)
        found = self._tables[request.table].query_entities(
            " and ".join(asked), parameters=values, results_per_page=page
        )
        rows: list[Row] = []
        pages = found.by_page()
        self.requests -= 1  # each page is a request of its own
        async for page in pages:
            self.requests += 1
            rows += [_row(entity) async for entity in page]
            if request.limit is not None and len(rows) >= request.limit:
                break
        return rows[: request.limit]

    def create(self) -> None:
        """Make the tables that are not there."""
        self.run(self._create())

    async def _create(self) -> None:
        async def one(name: str) -> None:
            try:
                await self._answered(self._tables[name].create_table)
            except ResourceExistsError:
                return  # another process was first
            except HttpResponseError as error:
                raise StoreError(f"{self.address.url}: no table {name}: {_code(error)}") from None

        await asyncio.gather(*map(one, TABLES))

    def close(self) -> None:
        """Give back the connections and the thread."""
        if self._closed or os.getpid() != self._pid:
            return
        self.run(self._service.close())
        if hasattr(self._owned, "close"):  # an identity that was made here
            self.run(self._owned.close())
        self._closed = True
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _refusal(request: Request, status: int | None, code: str) -> Reply:
    """Return what an error of the service says as an answer; raise if the request cannot be answered."""
    if code == "TableNotFound":
        raise StoreMissing("there are no tables of Tallystick there")
    if status == HTTPStatus.NOT_FOUND and isinstance(request, Get):
        return None
    refused = None if status is None else _REFUSALS.get(status)
    if refused is None:
        raise StoreError(f"the service refuses this: {status or 'unsent,'} {code}", code=code)
    return refused


def _code(error: BaseException) -> str:
    """Return the name that the service has for an error: its text may hold what others should not read."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or type(error).__name__)


def _told_to_rest(error: HttpResponseError) -> float:
    """Return for how long the service wants to be left alone."""
    told = str(getattr(error.response, "headers", {}).get("Retry-After", ""))
    return min(float(told), _PAUSE_SECONDS_MAX) if told.isdecimal() else 0.0


def _row(entity: Mapping[str, Any]) -> Row:
    values = {name: _value(value) for name, value in entity.items() if name not in _KEYS}
    return Row(entity["PartitionKey"], entity["RowKey"], entity.metadata["etag"], values)  # type: ignore[attr-defined]  # the library adds it


_KEYS: Final = frozenset({"PartitionKey", "RowKey"})


def _value(value: Any) -> Value:  # noqa: ANN401 (what the library makes of a property)
    return value.value if isinstance(value, EntityProperty) else value  # type: ignore[no-any-return]  # an integer


def _entity(put: Put) -> dict[str, Any]:
    values = {name: _property(value) for name, value in put.values.items()}
    return {"PartitionKey": put.pk, "RowKey": put.rk, **values}


def _property(value: Value) -> object:
    """Return a property: an integer may always have 64 bits."""
    return EntityProperty(value, EdmType.INT64) if type(value) is int else value


def _operation(each: Put | Drop) -> tuple[Any, ...]:
    if isinstance(each, Drop):
        return ("delete", {"PartitionKey": each.pk, "RowKey": each.rk})
    if each.etag is None:
        return ("create", _entity(each))
    return ("update", _entity(each), _guard(each))


def _guard(put: Put) -> dict[str, Any]:
    mode = UpdateMode.MERGE if put.merge else UpdateMode.REPLACE
    return {"mode": mode, "etag": put.etag, "match_condition": MatchConditions.IfNotModified}
