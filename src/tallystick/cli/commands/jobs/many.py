"""What the commands share that say one thing to many jobs: which jobs, a count first, and a yes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from tallystick.app.api.tally import Tally
from tallystick.app.asking.many import JobsReached, Which, in_reach
from tallystick.cli.commands.jobs.list import when_ms
from tallystick.cli.place import acting, whole_id
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import count
from tallystick.core.durations import duration_ms
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import check_name, check_storable
from tallystick.core.remote.keys import ALL_TENANTS
from tallystick.core.watching.searching import JobSearch
from tallystick.defaults import TENANT
from tallystick.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])

_WHERE = ("state", "workflow", "queue", "key", "parent", "error", "held")
_FILTERS = "--where, --tag, --older, --since, --until or --everything"
_DONE = {"cancel": "cancelled", "pause": "paused", "resume": "resumed", "retry": "retried"}


class _Filter(NamedTuple):
    """What the options ask for: conditions by their names, and times as they were written."""

    states: list[str]
    where: dict[str, str]
    tag: str | None
    older: str | None
    since: str | None
    until: str | None
    everything: bool

    @property
    def is_plain(self) -> bool:
        """Tell whether every store can find it; the rest needs one that can be searched."""
        return self.where.keys() <= {"workflow"} and self.since is None and self.until is None


def many_options(function: F) -> F:
    """Add the options that say which jobs are meant, and `--yes`, as one parameter `which`."""
    for option in (
        click.option("--yes", is_flag=True, help=f"With {_FILTERS}: do it without asking."),
        click.option(
            "--tenant",
            metavar="TENANT",
            help=f"With these: jobs of this tenant; '{ALL_TENANTS}' for all tenants.  [default: {TENANT}]",
        ),
        click.option("--everything", is_flag=True, help="All jobs of the tenant that can take it."),
        click.option("--until", metavar="WHEN", help="All jobs that were submitted before then."),
        click.option(
            "--since",
            metavar="WHEN",
            help="All jobs that were submitted since then: an instant, or 2h for two hours ago.",
        ),
        click.option("--older", metavar="DURATION", help="All jobs that were submitted longer ago: 2d, 30m."),
        click.option("--tag", metavar="TAG", help="All jobs that were submitted with this tag."),
        click.option(
            "--where",
            metavar="NAME=VALUE",
            multiple=True,
            help="All jobs with state=STATE, workflow=NAME, queue=NAME, key=KEY, parent=JOB, error=TEXT "
            "or held=yes, instead of one; may be given more than once.",
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
    asked, tenant, yes = _asked(which), which["tenant"], which["yes"]
    if asked is None:
        if yes:
            raise click.UsageError(f"--yes goes with {_FILTERS}.")
        if place[0] is None:
            raise click.UsageError("Missing argument 'JOB'.")
        if tenant is not None:
            raise click.UsageError(f"--tenant goes with {_FILTERS}: a JOB has its tenant.")
        return False
    address, more, url = place
    if more is not None:
        raise click.UsageError(f"With {_FILTERS} there is no JOB: name the APP alone.")
    with acting(address, url) as tally:
        wanted = _wanted(asked, tenant, tally)
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


def _wanted(asked: _Filter, tenant: str | None, tally: Tally) -> Which:
    """Return what was asked for, of one tenant, or of all of them."""
    if tenant != ALL_TENANTS and asked.is_plain:
        about: Which = {"tenant": TENANT if tenant is None else tenant}
        if asked.everything:
            return {**about, "everything": True}
        given = {"workflow": asked.where.get("workflow"), "tag": asked.tag, "older": asked.older}
        about |= {name: value for name, value in given.items() if value is not None}  # type: ignore[typeddict-item]  # as they are named
        return {**about, "states": asked.states} if asked.states else about
    return {"search": _search(asked, tenant, tally), "states": asked.states or list(JobState)}


def _search(asked: _Filter, tenant: str | None, tally: Tally) -> JobSearch:
    runtime = tally.runtime()
    # A search ends before its instant, and a job of that age is old enough.
    older = None if asked.older is None else runtime.clock.wall_ms() - duration_ms(asked.older) + 1
    ends = [end for end in (older, when_ms(asked.until)) if end is not None]
    given = {name: check_storable(name, text) for name, text in asked.where.items()}
    parent = given.get("parent")
    return JobSearch(
        None if tenant == ALL_TENANTS else check_name("tenant", TENANT if tenant is None else tenant),
        workflow=given.get("workflow"),
        queue=given.get("queue"),
        tag=None if asked.tag is None else check_storable("tag", asked.tag),
        key=given.get("key"),
        parent=None if parent is None else whole_id(runtime.store, parent),
        is_held="held" in given,
        since=when_ms(asked.since),
        until=min(ends, default=None),
        error=given.get("error"),
    )


def _asked(which: dict[str, Any]) -> _Filter | None:
    """Return what the options ask for; None if there is none of them."""
    states: list[str] = []
    where: dict[str, str] = {}
    for condition in which["where"]:
        name, mark, value = condition.partition("=")
        if not mark or name not in _WHERE:
            raise click.UsageError(
                f"--where takes NAME=VALUE with one of {', '.join(_WHERE)}, not {condition!r}."
            )
        if name == "state":
            states.append(value)
        elif name in where:
            raise click.UsageError(f"--where names one {name}.")
        elif name == "held" and value != "yes":
            raise click.UsageError("--where takes held=yes: leave it out for jobs that are held or not.")
        else:
            where[name] = value
    if which["older"] is not None:
        duration_ms(which["older"])
    options = (which["tag"], which["older"], which["since"], which["until"])
    has_filter = bool(states or where or any(option is not None for option in options))
    if which["everything"] and has_filter:
        raise click.UsageError("--everything is all jobs of the tenant: leave it out, or the other filters.")
    return (
        _Filter(states, where, *options, which["everything"]) if has_filter or which["everything"] else None
    )


def _confirmed(verb: str, found: int) -> bool:
    return sys.stdin.isatty() and click.confirm(f"{verb} {count(found, 'job')}?", err=True)
