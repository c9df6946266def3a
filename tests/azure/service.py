"""The part of the table service that the verbs use, as a value: it can be copied, cut off and asked twice.

`test_service.py` holds it against the emulator. Whatever is searched here is therefore true of that, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tallystick.store.azure.address import AzureAddress
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
    Values,
    Wrote,
)

T = TypeVar("T")
Key = tuple[str, str, str]


class Cut(BaseException):
    """The process has died here."""


class Tables:
    """All rows, each with a tag that changes whenever it is written: how often that was, deletes or not.

    So the same writes in another order lead to the same tables, and a search knows them again.
    """

    def __init__(self) -> None:
        self.rows: dict[Key, tuple[str, Values]] = {}
        self.written: dict[Key, int] = {}
        self.prints: dict[Key, int] = {}

    def copy(self) -> Tables:
        made = Tables()
        made.rows, made.written, made.prints = dict(self.rows), dict(self.written), dict(self.prints)
        return made

    @property
    def print(self) -> int:
        """Return what stands for everything that is there."""
        return hash((self.content, frozenset(self.written.items())))

    @property
    def content(self) -> int:
        """Return what stands for the rows alone: the same for two that only tags tell apart."""
        return hash(frozenset(self.prints.items()))

    def answer(self, request: Request) -> Reply:
        match request:
            case Get():
                found = self.rows.get(request)
                return None if found is None else Row(request.pk, request.rk, *found)
            case Find():
                return self._find(request)
            case Put() | Drop():
                return self._write((request,), alone=True)
            case Together():
                return self._write(request.writes, alone=False)

    def _find(self, asked: Find) -> list[Row]:
        found = [
            Row(pk, rk, *row)
            for (table, pk, rk), row in self.rows.items()
            if table == asked.table
            and (pk == asked.pk if asked.pk_below is None else asked.pk <= pk < asked.pk_below)
            and asked.low <= rk
            and (asked.below is None or rk < asked.below)
            and all(_holds(row[1].get(name), *condition) for name, *condition in asked.where)
        ]
        return sorted(found)[: asked.limit] if len(found) > 1 else found

    def _write(self, writes: Sequence[Put | Drop], *, alone: bool) -> Reply:
        for each in writes:
            found = self.rows.get((each.table, each.pk, each.rk))
            if isinstance(each, Drop):
                if found is None and not alone:
                    return ServiceRefusal.MISSING
            elif each.etag is None:
                if found is not None:
                    return ServiceRefusal.EXISTS
            elif found is None:
                return ServiceRefusal.MISSING
            elif found[0] != each.etag:
                return ServiceRefusal.CHANGED
        tags = []
        for each in writes:
            key = (each.table, each.pk, each.rk)
            if isinstance(each, Drop):
                self.rows.pop(key, None)
                self.prints.pop(key, None)
                continue
            before = self.rows[key][1] if each.merge else {}
            self.written[key] = self.written.get(key, 0) + 1
            tags.append(f"{self.written[key]}")
            self.rows[key] = (tags[-1], {**before, **each.values})
            self.prints[key] = hash(frozenset(self.rows[key][1].items()))
        return Wrote(tuple(tags))


def _holds(value: object, compared: str, text: str) -> bool:
    """Tell whether a property is as a request wants it; one that is not there never is."""
    if not isinstance(value, str):
        return False
    return {"eq": value == text, "ne": value != text, "ge": value >= text, "lt": value < text}[compared]


class ModelClient:
    """Carries requests to such tables; `left` is how many more it sends before it dies.

    With `twice` every request is done two times, and only the second answer is heard.
    """

    def __init__(self, tables: Tables, *, twice: bool = False) -> None:
        self.address = AzureAddress("model", "model")
        self.tables = tables
        self.requests = 0
        self.left: int | None = None
        self.twice = twice
        self.sent: list[Request] = []

    def ask(self, asking: Asking[T]) -> T:
        reply: Reply = None
        try:
            while True:
                reply = self.send(asking.send(reply))
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]  # a generator of T returns one
        finally:
            asking.close()

    def send(self, request: Request) -> Reply:
        if self.left is not None:
            if not self.left:
                raise Cut
            self.left -= 1
        self.requests += 1
        self.sent.append(request)
        if self.twice:
            self.tables.answer(request)
        return self.tables.answer(request)

    def ask_all(self, askings: Sequence[Asking[Any]]) -> list[Any]:
        return [self._asked(asking) for asking in askings]

    def _asked(self, asking: Asking[Any]) -> Any:
        try:
            return self.ask(asking)
        except Exception as error:  # noqa: BLE001 (as the client does: it is the answer of its verb)
            return error

    def create(self) -> None:
        """Have every table."""

    def close(self) -> None:
        """Have nothing to give back."""
