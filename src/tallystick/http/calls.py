"""A request that was let in: its key, its path, its query and its body, read strictly."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from tallystick.core.limits import JSON_KEYS_MAX, check_size, check_storable
from tallystick.core.remote.keys import ALL_TENANTS, ApiKey
from tallystick.core.remote.wire import read
from tallystick.errors import (
    BadInput,
    BadValue,
    NotAllowed,
    NotFound,
    NotKnown,
    RequestTooSlow,
    TallyError,
    WrongMediaType,
)

F = TypeVar("F", bound=msgspec.Struct)
BODY_SECONDS: Final = 20.0
_BEARER: Final = "bearer "
_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"


class Call(NamedTuple):
    """One request of a client whose key is known; a route without a key has none."""

    request: Request
    body: bytes
    key: ApiKey | None

    def form(self, kind: type[F]) -> F:
        """Return the body as a form; no body is an empty object."""
        return read(kind, self.body or b"{}", "request", JSON_KEYS_MAX)

    def query(self, kind: type[F]) -> F:
        """Return the query as a form; a name that is not known is refused, because it was meant."""
        said: dict[str, object] = {}
        lists = {field.name for field in msgspec.structs.fields(kind) if _is_list(field)}
        for name, value in self.request.query_params.multi_items():
            if name in lists:
                said.setdefault(name, []).append(value)  # type: ignore[attr-defined]  # a list, as said above
            elif name in said:
                raise BadValue(f"{name} of this query is given twice", path=name, what="query")
            else:
                said[name] = value
        try:
            return msgspec.convert(said, kind, strict=False)
        except msgspec.ValidationError as error:
            raise BadValue(f"this query cannot be accepted: {error}", what="query") from error

    def text(self, name: str) -> str:
        """Return a part of the path."""
        return check_storable(name, self.request.path_params[name])

    def check(self, scope: str) -> None:
        """Refuse a key that is not for this."""
        if self.key is None or not self.key.allows(scope):
            raise NotAllowed(f"this key has no scope {scope}", scope=scope)

    @property
    def who(self) -> str:
        """Return who does something by this request, as facts name them."""
        return "" if self.key is None else f"key {self.key.kid}"

    def tenant(self, named: str | None) -> str:
        """Return whose jobs are meant: those of the key's tenant, whatever else is named is not there."""
        own = self._tenant
        if own == ALL_TENANTS:
            if named is None:
                raise BadInput("this key is for all tenants: name one with tenant=", path="tenant")
            return named
        if named not in (None, own):
            raise NotFound(f"there is no tenant {named}", tenant=named)
        return own

    def sees(self, tenant_id: str) -> bool:
        """Tell whether the key is for jobs of this tenant."""
        return self._tenant in (ALL_TENANTS, tenant_id)

    @property
    def only_tenant(self) -> str | None:
        """Return the tenant to whose jobs alone the key may speak; None: to those of all."""
        return None if self._tenant == ALL_TENANTS else self._tenant

    @property
    def _tenant(self) -> str:
        if self.key is None:
            raise NotKnown
        return self.key.tenant_id


def bearer(request: Request) -> str | None:
    """Return what a request brings to be let in; two headers are as good as none."""
    sent = request.headers.getlist("authorization")
    if len(sent) != 1 or not sent[0].lower().startswith(_BEARER):
        return None
    return sent[0][len(_BEARER) :].strip()


async def read_body(request: Request, bytes_max: int) -> bytes:
    """Return the body of a request if it is JSON, small enough and here in time."""
    told = request.headers.get("content-length", "")
    if told.isdecimal():
        check_size("body", int(told), bytes_max)
    body, refused = await read_some(request, bytes_max)
    if refused is not None:
        raise refused
    return body


async def read_some(
    request: Request, bytes_max: int, *, is_form: bool = False
) -> tuple[bytes, TallyError | None]:
    """Return what came of a body, no more than may come, and why it is refused, if it is."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                parts.append(part[: bytes_max - size])
                size += len(part)
                check_size("form" if is_form else "body", size, bytes_max)
        if is_form or size:
            _check_type(request, _FORM if is_form else _JSON)
    except TimeoutError:
        return b"".join(parts), RequestTooSlow()
    except ClientDisconnect:
        gone = RequestTooSlow("the connection was closed before the request was whole")
        return b"".join(parts), gone
    except TallyError as refused:
        return b"".join(parts), refused
    return b"".join(parts), None


def _check_type(request: Request, wanted: str) -> None:
    kind, _, parameter = request.headers.get("content-type", "").lower().partition(";")
    charset = parameter.strip().removeprefix("charset=").strip('"')
    encoding = request.headers.get("content-encoding", "identity").lower()
    if kind.strip() != wanted or charset not in ("", "utf-8", "utf8") or encoding != "identity":
        raise WrongMediaType(f"the body of this request has to be {wanted}, in UTF-8 and not compressed")


def _is_list(field: msgspec.structs.FieldInfo) -> bool:
    return str(field.type).startswith("list[")
