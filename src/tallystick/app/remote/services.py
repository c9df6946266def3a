"""Services: what does remote steps, and how directives travel to them. One that is not declared is pulled."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tallystick.app.remote.routing import Routing, routing_of
from tallystick.core.limits import check_name
from tallystick.core.remote.policy import LANES, Mode
from tallystick.core.remote.rows import PULL
from tallystick.errors import BadInput, DuplicateHandler
from tallystick.remote.publishers.endpoint import Endpoint, Pull


class Service(NamedTuple):
    """A service as it was declared: where directives go, and where those go that were made before."""

    via: Endpoint
    former: tuple[Endpoint, ...] = ()


class Serving(ABC):
    """What a Tally knows of services."""

    _services: dict[str, Service]
    _routing: Routing | None
    _callback_url: str | None

    @property
    def callback_url(self) -> str | None:
        """Return where remote workers reach the HTTP API, if that was said."""
        return self._callback_url

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """Return everything that workers of this Tally publish to, by address."""
        every = [each for via, former in self._services.values() for each in (via, *former)]
        found = {each.address: each for each in every if each.address != PULL}
        # Directives that older versions have made are published to the same place.
        older = {name: each for each in every if (name := each.older_address) is not None}
        return older | found

    def service(self, name: str, *, via: Endpoint | None = None, former: Sequence[Endpoint] = ()) -> None:
        """Declare how directives travel to a service: `Pull()`, `Webhook(…)`, `Nats(…)` or `RedisStream(…)`.

        Jobs keep the way that was declared when they were submitted. When a service moves, name the old
        endpoints in `former`, until those jobs have ended.
        """
        check_name("service", name)
        if name in self._services:
            raise DuplicateHandler(f"there is a service {name} already", name=name)
        chosen = Pull() if via is None else via
        for each in (chosen, *former):
            if not isinstance(each, Endpoint):
                raise BadInput(
                    f"a service is reached via Pull(), Webhook(…), Nats(…) or RedisStream(…), not {each!r}"
                )
        self._services[name] = Service(chosen, tuple(former))

    def routing(
        self,
        *,
        mode: Mode = "DEFAULT",
        tenants: Mapping[str, Mode] | None = None,
        lanes: int = LANES,
        prefix: str | None = None,
    ) -> None:
        """Declare how directives are routed, once for a Tally.

        The mode of a job is that of its command, else that of its tenant in `tenants`, else `mode`. BURST
        spreads the documents of a tenant over all `lanes`, so that a command needs a `doc_id`; DEFAULT keeps
        a tenant in one. A topic is `<prefix>-p<lane>`, by the name of the service if there is no `prefix`.
        Jobs keep what was declared when they were submitted.
        """
        if self._routing is not None:
            raise DuplicateHandler(
                "the routing is declared already; declare all of it at once", name="routing"
            )
        self._routing = routing_of(mode, {} if tenants is None else tenants, lanes, prefix)

    def _routed(self) -> Routing:
        """Return what was declared, or what holds if nothing was."""
        return self._routing or Routing()


def ways_of(services: Mapping[str, Service]) -> dict[str, str]:
    """Return how directives for services travel that are not pulled, as a job keeps it."""
    return {name: each.via.address for name, each in services.items() if each.via.address != PULL}
