"""What the commands share that say one thing to many jobs: which jobs, a count first, and a yes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tallystick.app.api.tally import Tally
from tallystick.app.asking.many import JobsReached, Which, in_reach
from tallystick.cli.place import acting
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import count
from tallystick.core.durations import duration_ms
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import check_storable
from tallystick.core.remote.keys import ALL_TENANTS
from tallystick.core.watching.searching import JobSearch
from tallystick.defaults import TENANT
from tallystick.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])

_WHERE = ("state", "workflow")
_DONE = {"cancel": "cancelled", "pause": "paused", "resume": "resumed", "retry": "retried"}


def many_options(function: F) -> F:
    """Add `--where`, `--tag`, `--older`, `--tenant` and `--yes`, as one parameter `which` of each command."""
    for option in (
        click.option("--yes", is_flag=True, help="With --where, --tag or --older: do it without asking."),
        click.option(
            "--tenant",
            metavar="TENANT",
            help=f"With these: jobs of this tenant; '{ALL_TENANTS}' for all tenants.  [default: {TENANT}]",
        ),
        click.option("--older", metavar="DURATION", help="All jobs that were submitted longer ago: 2d, 30m."),
        click.option("--tag", metavar="TAG", help="All jobs that were submitted with this tag."),
        click.option(
            "--where",
            metavar="NAME=VALUE",
            multiple=True,
            help="All jobs with state=STATE or workflow=NAME, instead of one; may be given more than once.",
        ),
    ):
        function = option(function)
    return function


def speak_to_many(
    verb: str,
    which: dict[str, Any],
    place: tuple[str | None, str | None, str | None],
    act: Callable[[Tally, Which], JobsReached],
    *,
    as_json: bool,
) -> bool:
    """Say it to all jobs that match, if that was asked for; `place` is what stood for JOB, APP and --url."""
    wanted, tenant, yes = _wanted(which), which["tenant"], which["yes"]
    if not wanted:
        if yes:
            raise click.UsageError("--yes goes with --where, --tag or --older.")
        if place[0] is None:
            raise click.UsageError("Missing argument 'JOB'.")
        if tenant is not None:
            raise click.UsageError("--tenant goes with --where, --tag or --older: a JOB has its tenant.")
        return False
    address, more, url = place
    if more is not None:
        raise click.UsageError("With --where, --tag or --older there is no JOB: name the APP alone.")
    with acting(address, url) as tally:
        wanted = _of_tenant(wanted, tenant, tally.runtime().clock.wall_ms())
        found = sum(1 for _row in in_reach(tally.runtime(), verb, wanted))
        if not yes and not _confirmed(verb, found):
            raise BadInput(f"{count(found, 'job')} match; say --yes to {verb} them", matched=found)
        done = act(tally, wanted)
    said = f"{count(done, 'job')} {_DONE[verb]}"
    if done.passed_by:
        said += f"; {count(done.passed_by, 'job')} passed by: tally {verb} JOB says why"
    about = {"matched": found, "done": int(done), "passed_by": done.passed_by}
    answer(said, about, as_json=as_json)
    return True


def _of_tenant(wanted: Which, tenant: str | None, now: int) -> Which:
    """Return what was asked for, of one tenant, or of all of them."""
    if tenant != ALL_TENANTS:
        return wanted if tenant is None else {**wanted, "tenant": tenant}
    states = wanted.get("states") or list(JobState)
    older = wanted.get("older")
    search = JobSearch(
        None,
        workflow=_storable("workflow", wanted.get("workflow")),
        tag=_storable("tag", wanted.get("tag")),
        # A search ends before its instant, and a job of that age is old enough.
        until=None if older is None else now - duration_ms(older) + 1,
    )
    return {"search": search, "states": states}


def _storable(kind: str, text: str | None) -> str | None:
    return None if text is None else check_storable(kind, text)


def _wanted(which: dict[str, Any]) -> Which:
    wanted: Which = {}
    states: list[str] = []
    for condition in which["where"]:
        name, mark, value = condition.partition("=")
        if not mark or name not in _WHERE:
            raise click.UsageError(f"--where takes state=STATE or workflow=NAME, not {condition!r}.")
        if name == "state":
            states.append(value)
        elif "workflow" in wanted:
            raise click.UsageError("--where names one workflow.")
        else:
            wanted["workflow"] = value
    if states:
        wanted["states"] = states
    if which["tag"] is not None:
        wanted["tag"] = which["tag"]
    if which["older"] is not None:
        duration_ms(which["older"])
        wanted["older"] = which["older"]
    return wanted


def _confirmed(verb: str, found: int) -> bool:
    return sys.stdin.isatty() and click.confirm(f"{verb} {count(found, 'job')}?", err=True)
