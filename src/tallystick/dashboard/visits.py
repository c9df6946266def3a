"""A request of a person who is logged in: what the key allows, whose jobs are meant, and what was sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request

from tallystick.app.api.job import Job
from tallystick.core.limits import check_name, check_storable
from tallystick.core.remote.keys import ADMIN, ALL_TENANTS, ApiKey
from tallystick.core.watching.acts import About, Act
from tallystick.dashboard.sessions import BooksChecked, Session, is_same
from tallystick.engine.audit import Audit
from tallystick.errors import BadInput, FormStale, NotAllowed, NotFound
from tallystick.store.api import JobRow, Searched, Store

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.app.api.tally import Tally

FORM_BYTES_MAX: Final = 65_536
_FIELDS_MAX: Final = 100
_ACTS: Final = 20


@dataclass(slots=True)
class Visit:
    """One request: whose it is, on which Tally, and where the dashboard stands in it."""

    request: Request
    app: Tally
    session: Session
    key: ApiKey
    runs_root: str | None = None
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """Return the path under which the dashboard is found, without a slash at its end."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")

    @property
    def runtime(self) -> Runtime:
        """Return what the Tally has open."""
        return self.app.runtime()

    @property
    def store(self) -> Store:
        """Return the store."""
        return self.runtime.store

    @property
    def tenant(self) -> str:
        """Return whose jobs are shown: those of the key's tenant, or the one that an operator has chosen."""
        return self.session.tenant if self.key.tenant_id == ALL_TENANTS else self.key.tenant_id

    @property
    def is_operator(self) -> bool:
        """Tell whether pages about the whole store are open."""
        return self.key.allows(ADMIN)

    @property
    def sees_all_tenants(self) -> bool:
        """Tell whether the key is for any tenant."""
        return self.key.tenant_id == ALL_TENANTS

    @property
    def who(self) -> str:
        """Return who does something here, as facts name them."""
        return f"key {self.key.kid} (dashboard)"

    def acts(self, about: About, name: str | None = None) -> list[Act]:
        """Return what people did lately to jobs, queues or schedules, or to one of them."""
        return self.store.acts([about], name, limit=_ACTS) if isinstance(self.store, Searched) else []

    @property
    def now(self) -> int:
        """Return the time by the clock of this process, which instants are compared with."""
        return self.runtime.clock.wall_ms()

    def may(self, scope: str) -> bool:
        """Tell whether the key allows this; an operator's key for all tenants may do what it may see."""
        return self.key.allows(scope)

    def need(self, scope: str) -> None:
        """Refuse a key that is not for this."""
        if not self.key.allows(scope):
            raise NotAllowed(f"this key has no scope {scope}", scope=scope)

    def asked(self, name: str) -> str | None:
        """Return what the address asks for under a name; nothing and empty are the same."""
        value = self.request.query_params.get(name, "").strip()
        return check_storable(name, value) if value else None

    def part(self, name: str) -> str:
        """Return a part of the path."""
        return check_storable(name, self.request.path_params[name])

    def sent(self, name: str, *, default: str | None = None) -> str:
        """Return a field of the form."""
        value = self.form.get(name, default)
        if value is None:
            raise BadInput(f"the form lacks {name}")
        return check_storable(name, value)

    def job(self) -> tuple[Job[Any], JobRow]:
        """Return the job that the address names; that of another tenant is not there."""
        job_id = self.part("job_id")
        row = self.runtime.reads.job(job_id)
        if row is None or not (self.sees_all_tenants or row.tenant_id == self.tenant):
            raise NotFound(f"there is no job {job_id}", job_id=job_id)
        return self.app.job(job_id).only_of(None if self.sees_all_tenants else self.tenant), row

    def choose_tenant(self, name: str) -> None:
        """Look at another tenant from now on."""
        if not self.sees_all_tenants:
            raise NotFound(f"there is no tenant {name}", tenant=name)
        self.session.tenant = check_name("tenant", name)

    def check_books(self, job_id: str | None, check: Callable[[], Audit]) -> None:
        """Check books, and keep what was found for the pages that show it."""
        self.session.checked = BooksChecked(job_id, self.now, check())

    def checked(self, job_id: str | None) -> BooksChecked | None:
        """Return what the last check has found, if it was about this."""
        found = self.session.checked
        return found if found is not None and found.job_id == job_id else None

    def at(self, path: str, **query: object) -> str:
        """Return the address of a page; what is None or empty is left out."""
        given = [(name, value) for name, value in query.items() if value not in (None, "", (), [])]
        return f"{self.base}/{path}" + (f"?{urlencode(given, doseq=True)}" if given else "")

    def check_form(self, body: bytes) -> None:
        """Read a form, and refuse one that is not of this session."""
        self.form = read_form(body)
        if not is_same(self.session.csrf, self.form.get("csrf", "")):
            raise FormStale


def read_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form; one that is there twice has its last value."""
    try:
        fields = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX
        )
    except ValueError:
        raise BadInput("this form cannot be read") from None
    return dict(fields)


def quoted(text: str) -> str:
    """Return a text as a part of a path."""
    return quote(text, safe="")
