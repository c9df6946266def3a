"""What a remote step was declared with: its service, how long it may take, what its directive carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from tallystick.core.limits import PAYLOAD_BYTES_MAX, check_text
from tallystick.core.pictures import Place
from tallystick.core.remote.policy import START_WITHIN_MS, StepTimes
from tallystick.core.remote.rows import step_id_of
from tallystick.store.api import Asks

if TYPE_CHECKING:
    from tallystick.app.remote.routing import Routing
    from tallystick.app.values.signature import Signature


@dataclass(frozen=True, slots=True)
class RemoteRules:
    """How a remote step is asked for."""

    service: str
    step_type: str
    times: StepTimes
    signature: Signature
    # How directives for services travel that are not pulled.
    ways: Callable[[], dict[str, str]]
    routing: Callable[[], Routing]
    start_ms: int = START_WITHIN_MS

    def asks(self, args: tuple[Any, ...], kwargs: dict[str, Any], place: Place, lease_id: str) -> Asks:
        """Return what a call asks of the service: its arguments by name, and the rules of this step."""
        payload = self.signature.encode(args, kwargs)
        check_text(f"the arguments of {place[1]}", payload, PAYLOAD_BYTES_MAX)
        times = {} if self.times == StepTimes() else {step_id_of(place): self.times}
        via = {service: way for service, way in self.ways().items() if service == self.service}
        routed = self.routing().for_workflows()
        rules = msgspec.structs.replace(routed, times=times, via=via, start_within_ms=self.start_ms)
        return Asks(self.service, self.step_type, payload, rules.written(), lease_id)
