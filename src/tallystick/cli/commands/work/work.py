"""`tally work`: run jobs until told to stop, in this process or in several fresh ones."""

from __future__ import annotations

from dataclasses import replace

import click

from tallystick.app.running.working import worker_options
from tallystick.cli.commands.work.here import serve
from tallystick.cli.commands.work.processes import serve_with_processes
from tallystick.cli.commands.work.progress import JsonLines, WorkReporter, reporter_for
from tallystick.cli.loading import Loaded, declared_queues, load_app
from tallystick.cli.place import announce_creation, json_option, url_option
from tallystick.core.limits import check_name
from tallystick.core.watching.binding import split_bind
from tallystick.defaults import BATCH_SCHEDULING, WORKER_GRACE, WORKER_LEASE, WORKER_SLOTS
from tallystick.engine.retention import retention_ms
from tallystick.errors import BadInput, StoreMissing

_EXAMPLES = """\b
Examples:
  tally work shop:app
  tally work shop --queues mail,default --concurrency 64
  tally work shop --processes 4 --keep 30d
"""


@click.command("work", epilog=_EXAMPLES)
@click.argument("address", metavar="APP")
@click.option(
    "--queues", metavar="A,B", help="The queues to serve, the first one first; all declared ones unless told."
)
@click.option(
    "--concurrency",
    metavar="N",
    type=click.IntRange(1, 10_000),
    default=WORKER_SLOTS,
    show_default=True,
    help="Jobs at once, in each process.",
)
@click.option(
    "--lease",
    metavar="DURATION",
    default=WORKER_LEASE,
    show_default=True,
    help="How long a crash may go unnoticed.",
)
@click.option(
    "--grace",
    metavar="DURATION",
    default=WORKER_GRACE,
    show_default=True,
    help="How long running jobs may go on after the first signal.",
)
@click.option(
    "--batch-scheduling/--no-batch-scheduling",
    default=BATCH_SCHEDULING,
    show_default=True,
    help="Whether threads of sync workflows ask Linux for SCHED_BATCH.",
)
@click.option(
    "--keep",
    metavar="DURATION",
    help="Remove jobs that ended longer ago than this (30d), as APP says unless told; else they stay.",
)
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(1, 1_000),
    default=1,
    show_default=True,
    help="How many processes.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve series for Prometheus there; the second of several processes takes the next port, and so on.",
)
@click.option("--verbose", "-v", is_flag=True, help="Tell of every job, not only of trouble.")
@click.option("--report-to", "report_to", type=int, hidden=True)
@url_option
@json_option
def command(
    *,
    address: str,
    queues: str | None,
    concurrency: int,
    lease: str,
    grace: str,
    batch_scheduling: bool,
    keep: str | None,
    processes: int,
    metrics: str | None,
    verbose: bool,
    report_to: int | None,
    url: str | None,
    as_json: bool,
) -> int:
    """Serve the workflows of APP until SIGTERM or SIGINT.

    The first signal stops claiming and lets running jobs end within their grace; what has not ended then goes
    back to the queue at its next step. A second signal ends the process at once and leaves its jobs to their
    leases. If one of several processes dies, the others are stopped and the exit code is 1.
    """
    loaded = load_app(address)
    if not loaded.app.workflows and not loaded.app.protocols:
        raise BadInput(f"{loaded.address} declares no workflow; there is nothing to work on", address=address)
    if url is not None:
        loaded.app.bind(url)
    series_at = None if metrics is None else split_bind(metrics)
    served = _queues(loaded, queues)
    options = worker_options(loaded.app, served, concurrency, lease, grace, batch_scheduling=batch_scheduling)
    if keep is not None:
        options = replace(options, keep_ms=retention_ms(keep))
    try:
        loaded.app.runtime(create=False)
    except StoreMissing as missing:
        announce_creation(missing)
    with _reporter(report_to, as_json=as_json, verbose=verbose) as reporter:
        lonely = [queue for queue in options.queues if queue not in declared_queues(loaded.app)]
        if lonely and report_to is None:
            names = ", ".join(lonely)
            reporter.event(
                "warning",
                f"no workflow of {loaded.address} declares the queue {names}; is it written right?",
                action="queue.lonely",
            )
        if processes > 1:
            return serve_with_processes(loaded, options, processes, reporter, series_at)
        return serve(loaded, options, reporter, watch_stdin=report_to is not None, metrics=series_at)


def _reporter(report_to: int | None, *, as_json: bool, verbose: bool) -> WorkReporter:
    if report_to is not None:
        stream = open(report_to, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (a descriptor; it ends with us)
        return JsonLines(stream, verbose=verbose)
    return reporter_for(as_json=as_json, verbose=verbose)


def _queues(loaded: Loaded, given: str | None) -> tuple[str, ...]:
    if given is None:
        return tuple(sorted(declared_queues(loaded.app)))
    return tuple(dict.fromkeys(check_name("queue", name.strip()) for name in given.split(",")))
