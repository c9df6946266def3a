"""Protocols: fixed lists of steps that services outside do, and the commands that become jobs of them."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tallystick.app.api.job import Job
from tallystick.app.api.retrying import Duration, Retry
from tallystick.app.remote.callables import times_of, tries_of
from tallystick.app.remote.payload_types import type_check
from tallystick.app.remote.protocol_files import payload_check, read_protocols
from tallystick.app.remote.routing import Routing, start_ms
from tallystick.app.remote.services import Service, Serving, ways_of
from tallystick.app.replay.context import refuse_inside
from tallystick.app.values.codec import Codec
from tallystick.core.durations import duration_ms
from tallystick.core.lease import ACK_TIMEOUT_MS, WORK_LEASE_MS
from tallystick.core.remote.commands import as_job, payload_of
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.policy import StepTimes
from tallystick.core.remote.requests import SubmitCommand
from tallystick.core.remote.wire import Command, ProtocolDefinition, StepDefinition, read
from tallystick.engine.submission import check_same_content
from tallystick.errors import BadCommand, BadInput, DuplicateHandler, InvariantBroken
from tallystick.store.api import Existing, Outcome, Protocols

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime


@dataclass(frozen=True, slots=True)
class RemoteStep:
    """One step of a protocol: which service does it, and how long it may take to begin and to work."""

    step_id: str
    _: KW_ONLY
    service: str
    step_type: str | None = None
    ack: Duration = ACK_TIMEOUT_MS / 1000
    lease: Duration = WORK_LEASE_MS / 1000
    payload: type[object] | None = None
    # How often it is tried and how soon again; three times, one and five minutes apart, if nothing is said.
    retry: Retry | None = None


def _from_file(step: StepDefinition) -> RemoteStep:
    """Return a step as Python would have declared it."""
    made = RemoteStep(step.step_id, service=step.service, step_type=step.step_type)
    return replace(
        made,
        ack=made.ack if step.ack is None else step.ack,
        lease=made.lease if step.lease is None else step.lease,
    )


class RemoteProtocol:
    """A protocol that was declared on a Tally."""

    def __init__(
        self,
        runtime: Callable[[], Runtime],
        definition: ProtocolDefinition,
        steps: Sequence[RemoteStep],
        services: Mapping[str, Service],
        routing: Callable[[], Routing],
    ) -> None:
        """Remember what was declared; services and routing are those of its Tally, also those to come."""
        self._runtime = runtime
        self._services = services
        self._routing = routing
        self.definition = definition
        self._checks = {
            step.step_id: type_check(step.step_id, step.payload) for step in steps if step.payload is not None
        }
        self._checks |= {
            step.step_id: check for step in definition.steps if (check := payload_check(step)) is not None
        }
        times = {step.step_id: _times(step) for step in steps}
        self._times = {name: each for name, each in times.items() if each != StepTimes()}
        self._start_ms = start_ms(definition.start_within)

    @property
    def id(self) -> str:
        """Return its name."""
        return self.definition.id

    def submit(self, command: Command | Mapping[str, object] | bytes) -> Job[Any]:
        """Make a job of a command; the same content, or the same key, is the same job."""
        refuse_inside("submit a command")
        request = self.request(command)
        runtime = self._runtime()
        outcome = runtime.committer.call((request,))
        runtime.publish(outcome)
        return self.made(request, outcome)

    async def submit_aio(self, command: Command | Mapping[str, object] | bytes) -> Job[Any]:
        """Make a job of a command without blocking the event loop."""
        refuse_inside("submit a command")
        request = self.request(command)
        runtime = self._runtime()
        outcome = await runtime.lane().call((request,))
        runtime.publish(outcome)
        return self.made(request, outcome)

    def request(self, command: Command | Mapping[str, object] | bytes) -> SubmitCommand:
        """Return the request that makes a job of a command, or say what is wrong with it."""
        runtime = self._runtime()
        if not isinstance(runtime.store, Protocols):
            raise BadInput(f"{runtime.store.url} keeps no protocol jobs")
        said = command if isinstance(command, Command) else read(Command, command, "command")
        if said.protocol_id not in (None, self.id):
            raise BadCommand(
                f"this command is for the protocol {said.protocol_id}, not {self.id}", path="protocol_id"
            )
        for step_id, check in self._checks.items():
            check(payload_of(said, step_id))
        policy = msgspec.structs.replace(
            self._routing().for_commands(said.tenant_id),
            times=self._times,
            via=ways_of(self._services),
            start_within_ms=self._start_ms,
        )
        ids = runtime.ids
        request = as_job(said, self.definition, policy, job_id=ids.new(), lease_id=ids.token())
        return request._replace(relays=runtime.relays)

    def made(self, request: SubmitCommand, outcome: Outcome) -> Job[Any]:
        """Return the job that a request has made, or that was there."""
        if isinstance(outcome, Existing):
            check_same_content(request.reservation, outcome)
            return Job(self._runtime, outcome.job_id, lambda: Codec(Any), created=False)
        if not isinstance(outcome, Hearing):
            raise InvariantBroken(f"a command was answered with {outcome!r}")
        return Job(self._runtime, request.job_id, lambda: Codec(Any), created=True)


def _times(step: RemoteStep) -> StepTimes:
    tries = None if step.retry is None else tries_of(step.retry)
    return times_of(step.step_id, duration_ms(step.ack), duration_ms(step.lease), tries)


class Declaring(Serving):
    """What a Tally knows of protocols."""

    _protocols: dict[str, RemoteProtocol]

    @abstractmethod
    def runtime(self, *, create: bool = True) -> Runtime:
        """Return the open store; a Tally opens it on first use."""

    @property
    def protocols(self) -> dict[str, RemoteProtocol]:
        """Return the protocols that were declared here, by their names."""
        return dict(self._protocols)

    def protocol(
        self,
        protocol_id: str,
        *,
        request_types: Sequence[str],
        steps: Sequence[RemoteStep],
        start_within: Duration | None = None,
    ) -> RemoteProtocol:
        """Declare a fixed list of remote steps, and which commands it takes.

        A step whose service is pulled waits for a remote worker for `start_within`, a day if nothing is said;
        then the job fails with `DISPATCH_FAILED`.
        """
        if isinstance(request_types, str):
            raise BadInput(
                f"request_types are a list: request_types=[{request_types!r}]", path="request_types"
            )
        for place, step in enumerate(steps):
            if not isinstance(step, RemoteStep):
                raise BadInput(
                    f"steps[{place}] of the protocol {protocol_id} is {step!r}, not a RemoteStep",
                    path=f"steps[{place}]",
                )
        declared = [StepDefinition(step.step_id, step.service, step.step_type) for step in steps]
        within = None if start_within is None else start_ms(start_within) / 1000
        data = msgspec.to_builtins(ProtocolDefinition(protocol_id, list(request_types), declared, within))
        return self._declare(read(ProtocolDefinition, data, "protocol"), steps)

    def load_protocols(self, path: str | os.PathLike[str]) -> list[RemoteProtocol]:
        """Declare the protocols of a JSON or TOML file; what is wrong there is told with its path.

        The file holds one protocol, or several under `protocols`. All of them are declared, or none.
        """
        definitions = read_protocols(Path(path))
        for definition in definitions:
            start_ms(definition.start_within)
            for step in definition.steps:
                payload_check(step)
        return [self._declare(each, [_from_file(step) for step in each.steps]) for each in definitions]

    def _declare(self, definition: ProtocolDefinition, steps: Sequence[RemoteStep]) -> RemoteProtocol:
        protocol_id = definition.id
        if protocol_id in self._protocols:
            raise DuplicateHandler(f"there is a protocol {protocol_id} already", name=protocol_id)
        for other in self._protocols.values():
            both = sorted(set(other.definition.request_types) & set(definition.request_types))
            if both:
                raise DuplicateHandler(
                    f"the protocol {other.id} takes commands of the type {both[0]} already", name=both[0]
                )
        made = RemoteProtocol(self.runtime, definition, steps, self._services, self._routed)
        self._protocols[protocol_id] = made
        return made

    def command(self, command: Mapping[str, object] | bytes) -> Job[Any]:
        """Make a job of a command by the protocol that takes it."""
        said = read(Command, command, "command")
        return self.taking(said).submit(said)

    async def command_aio(self, command: Mapping[str, object] | bytes) -> Job[Any]:
        """Make a job of a command without blocking the event loop; as `command` in all else."""
        said = read(Command, command, "command")
        return await self.taking(said).submit_aio(said)

    def taking(self, said: Command) -> RemoteProtocol:
        """Return the protocol that takes a command."""
        for protocol in self._protocols.values():
            if said.protocol_id == protocol.id or (
                said.protocol_id is None and said.request_type in protocol.definition.request_types
            ):
                return protocol
        if said.protocol_id is not None:
            known = ", ".join(self._protocols)
            raise BadCommand(
                f"there is no protocol {said.protocol_id!r}; known are: {known or 'none'}", path="protocol_id"
            )
        known = ", ".join(kind for each in self._protocols.values() for kind in each.definition.request_types)
        raise BadCommand(
            f"no protocol takes commands of the type {said.request_type!r}; known are: {known or 'none'}",
            path="request_type",
        )
