"""How directives are routed: in which mode, over how many lanes, and by which topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, get_args

from tallystick.app.api.retrying import Duration
from tallystick.core.durations import duration_ms
from tallystick.core.limits import check_name
from tallystick.core.remote.policy import LANES, START_WITHIN_MS, Mode, Policy
from tallystick.errors import BadInput

LANES_MAX: Final = 1_024
_MODES: Final = get_args(Mode)


class Routing(NamedTuple):
    """What was declared for all jobs, and for the jobs of some tenants."""

    mode: Mode = "DEFAULT"
    tenants: Mapping[str, Mode] = {}
    lanes: int = LANES
    # Before the lane in the name of a topic; that of the service if there is none.
    prefix: str = ""

    def for_commands(self, tenant_id: str) -> Policy:
        """Return the routing of a protocol job, as it keeps it; a command may name another mode."""
        tenant = self.tenants.get(tenant_id)
        return Policy(mode=self.mode, tenant_mode=tenant, lanes=self.lanes, topic_prefix=self.prefix)

    def for_workflows(self) -> Policy:
        """Return the routing of a remote step of a workflow: it has no document, so there is no BURST."""
        return Policy(lanes=self.lanes, topic_prefix=self.prefix)


def routing_of(mode: object, tenants: object, lanes: object, prefix: object) -> Routing:
    """Return the routing that was declared, or say what is wrong with it.

    >>> routing_of("DEFAULT", {"acme": "BURST"}, 4, "work").for_commands("acme").tenant_mode
    'BURST'
    """
    if not isinstance(tenants, Mapping):
        raise BadInput(f"tenants={tenants!r} is not a mapping: write tenants={{'acme': 'BURST'}}")
    modes = {check_name("tenant", name): _mode(each, f"tenants[{name!r}]") for name, each in tenants.items()}
    if type(lanes) is not int or not 1 <= lanes <= LANES_MAX:
        raise BadInput(f"lanes={lanes!r}: write a whole number from 1 to {LANES_MAX:,}", lanes=lanes)
    if prefix is not None and not isinstance(prefix, str):
        raise BadInput(f"prefix={prefix!r} is not a text")
    named = "" if prefix is None else check_name("prefix", prefix)
    return Routing(_mode(mode, "mode"), modes, lanes, named)


def _mode(given: object, what: str) -> Mode:
    for mode in _MODES:
        if given == mode:
            return mode  # type: ignore[no-any-return]  # one of those that the type lists
    raise BadInput(f"{what}={given!r} is not a mode; the modes are {', '.join(_MODES)}")


def start_ms(start_within: Duration | None) -> int:
    """Return how long a directive may wait for a remote worker that asks for it; a day if nothing is said."""
    ms = START_WITHIN_MS if start_within is None else duration_ms(start_within)
    if ms <= 0:
        raise BadInput(f"start_within={start_within!r} leaves remote workers no time to ask for the work")
    return ms
