"""Remote steps on a Tally: declared by a signature, done by a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tallystick.app.api.declaring import DeclaringSteps
from tallystick.app.api.decorators import RemoteDecorator
from tallystick.app.api.retrying import ONCE, Duration, Retry
from tallystick.app.remote.callables import AsyncRemote, Remote, check_body, times_of, tries_of
from tallystick.app.remote.routing import Routing, start_ms
from tallystick.app.remote.rules import RemoteRules
from tallystick.app.remote.services import Service, ways_of
from tallystick.app.values.signature import Signature
from tallystick.core.durations import duration_ms
from tallystick.core.lease import ACK_TIMEOUT_MS, WORK_LEASE_MS
from tallystick.core.limits import check_name

if TYPE_CHECKING:
    from tallystick.app.remote.protocols import RemoteProtocol


class DeclaringRemotes(DeclaringSteps):
    """What a Tally knows of steps that remote workers do."""

    # The services of remote steps of workflows, by the names of the steps.
    _remotes: dict[str, str]
    _services: dict[str, Service]
    _routed: Callable[[], Routing]
    _protocols: dict[str, RemoteProtocol]

    @property
    def asks_remote_workers(self) -> bool:
        """Tell whether its jobs have remote steps, whose times its workers look after."""
        return bool(self._remotes or self._protocols)

    @property
    def asked_services(self) -> list[str]:
        """Return the services that its protocols and workflows ask, in the order of their names."""
        steps = (step for each in self._protocols.values() for step in each.definition.steps)
        return sorted({*self._remotes.values(), *(step.service for step in steps)})

    def remote(
        self,
        service: str,
        *,
        name: str | None = None,
        step_type: str | None = None,
        ack: Duration = ACK_TIMEOUT_MS / 1000,
        lease: Duration = WORK_LEASE_MS / 1000,
        start_within: Duration | None = None,
        retry: Retry | None = None,
        raises: Sequence[type[Exception]] = (),
    ) -> RemoteDecorator:
        """Declare a step that a remote worker of this service does, by what it takes and returns.

        The body never runs: write `...` or `raise NotImplementedError`. A worker has `ack` to begin and
        `lease` to end or to be heard of; without `retry` it has three attempts, one and five minutes apart.
        If the service is pulled, a worker is to ask for the work within `start_within`, a day if nothing is
        said.
        """
        check_name("service", service)
        within = start_ms(start_within)

        def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (the overloads say what comes out)
            spec = self._spec(
                kind="remote", function=function, name=name, retry=ONCE, timeout=None, raises=raises
            )
            check_body(spec.name, function)
            tries = None if retry is None else tries_of(retry)
            times = times_of(spec.name, duration_ms(ack), duration_ms(lease), tries)
            kind = check_name("step type", step_type or spec.name)
            ways = partial(ways_of, self._services)
            rules = RemoteRules(service, kind, times, Signature(function), ways, self._routed, within)
            self._remotes[spec.name] = service
            made = AsyncRemote if spec.is_async else Remote
            return made(self._tally(), replace(spec, remote=rules))

        return decorate
