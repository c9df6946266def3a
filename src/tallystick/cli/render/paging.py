"""A page of jobs, newest first: its options, and the word that there is another page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from tallystick.cli.render.output import printable, show, show_data, tell
from tallystick.cli.render.wording import short
from tallystick.core.limits import PAGE_ROWS_MAX, check_name, is_storable
from tallystick.core.remote.keys import ALL_TENANTS
from tallystick.errors import BadInput
from tallystick.ids import is_uuid
from tallystick.store.api import JobRow, Store

F = TypeVar("F", bound=Callable[..., Any])


def page_options(function: F) -> F:
    """Add `--tenant`, `--workflow`, `--limit` and `--after`."""
    for option in (
        click.option(
            "--after", metavar="JOB", help="The page after this job: the last one of the page before."
        ),
        click.option(
            "--limit",
            metavar="N",
            type=click.IntRange(1, PAGE_ROWS_MAX),
            default=20,
            show_default=True,
            help="How many.",
        ),
        click.option("--workflow", metavar="NAME", help="Only jobs of this workflow."),
        click.option("--tenant", metavar="TENANT", help="Only jobs of this tenant; else of all."),
    ):
        function = option(function)
    return function


def one_tenant(named: str | None) -> str | None:
    """Return the tenant that was named, or None for all of them."""
    return None if named in (None, ALL_TENANTS) else check_name("tenant", named)


def tenants_of(rows: Sequence[JobRow]) -> list[tuple[str]] | list[tuple[()]]:
    """Return a cell with the tenant for each row, or no cell if all are of one tenant."""
    if len({row.tenant_id for row in rows}) > 1:
        return [(printable(row.tenant_id),) for row in rows]
    return [()] * len(rows)


def checked_cursor(store: Store, after: str | None) -> str | None:
    """Return the job that a page comes after, or refuse what is no id: it would be some other page.

    A job that is not there any more is still a place in the order.
    """
    if after is None or is_uuid(after) or (is_storable(after) and store.job(after)):
        return after
    raise BadInput(
        f"--after takes the whole id of a job, the last one of the page before, not {short(after)!r}",
        after=after,
    )


class Page(NamedTuple):
    """Some jobs, and the one that the next page comes after."""

    rows: Sequence[JobRow]
    next_after: str | None

    @classmethod
    def of(cls, rows: Sequence[JobRow], limit: int) -> Page:
        """Make a page of rows; one more than the limit was asked for, and tells of another page."""
        page = rows[:limit]
        return cls(page, page[-1].job_id if len(rows) > limit else None)

    def show(
        self,
        as_data: Callable[[JobRow], dict[str, object]],
        as_lines: Callable[[Sequence[JobRow]], list[str]],
        *,
        nothing: str,
        as_json: bool,
    ) -> None:
        """Print it as data or as lines; `nothing` is said of an empty one."""
        if as_json:
            show_data({"jobs": [as_data(row) for row in self.rows], "next_after": self.next_after})
        elif not self.rows:
            tell(nothing)
        else:
            show("\n".join(as_lines(self.rows)))
            if self.next_after:
                tell(f"more: --after {self.next_after}")
