"""`tally run`: start, resume, replay, show, verify, cancel and draw runs; the folder is the truth."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tallystick.cli.render.output import complain, show, show_bytes, show_data, show_encoded, tell
from tallystick.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tallystick.runs.log.snapshot import Snapshot
    from tallystick.runs.orchestrator.start import Redo

_EXAMPLES = """\b
Examples:
  tally run start tallystick.runs.toy:pipeline first
  tally run show first --json
  tally run resume tallystick.runs.toy:pipeline first
  tally run graph first --svg first.svg
"""


@click.group("run", epilog=_EXAMPLES)
def command() -> None:
    """Pipelines whose folder is the truth."""


def _common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every command about a run has."""
    root = click.option(
        "--root", default="runs", show_default=True, type=click.Path(), help="The folder that holds the runs."
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print data as JSON.")
    return root(as_json(function))


def _working(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every command has which does the work of a run."""
    parallel = click.option(
        "--parallel", default=4, show_default=True, type=click.IntRange(1, 256), help="Workers at a time."
    )
    inputs = click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="NAME=FILE",
        help="Supply an artifact that no node makes; may be repeated.",
    )
    telemetry = click.option(
        "--telemetry",
        metavar="URL",
        envvar="TALLY_TELEMETRY_URL",
        help="Tell this service about the run; see `tally telemetry serve`.",
    )
    return parallel(inputs(telemetry(function)))


@command.command("start")
@click.argument("pipeline")
@click.argument("run_id")
@_working
@_common
def start(pipeline: str, run_id: str, **options: Any) -> int:  # noqa: ANN401 (click hands options over by name)
    """Start the run RUN_ID of PIPELINE, which is written module:name or file.py:name."""
    return _start_or_resume(pipeline, run_id, fresh=True, **options)


@command.command("resume")
@click.argument("pipeline")
@click.argument("run_id")
@click.option("--from", "from_state", default="", metavar="STATE", help="Do everything again from STATE on.")
@click.option(
    "--force",
    multiple=True,
    metavar="ITEM",
    help="Do finished work again: a work item id, a worker, or worker:scope; may be repeated.",
)
@_working
@_common
def resume(pipeline: str, run_id: str, from_state: str, force: tuple[str, ...], **options: Any) -> int:  # noqa: ANN401 (as start)
    """Go on with the run RUN_ID where its log ends; finished work is not repeated."""
    from tallystick.runs.log.recovery import opened
    from tallystick.runs.orchestrator.start import Redo

    with opened(options["root"], run_id, create=False):
        # A mistyped run must not become a new one.
        pass
    return _start_or_resume(pipeline, run_id, redo=Redo(force, from_state), **options)


def _start_or_resume(
    target: str,
    run_id: str,
    *,
    root: str,
    inputs: tuple[str, ...],
    parallel: int,
    telemetry: str | None,
    as_json: bool,
    redo: Redo | None = None,
    fresh: bool = False,
) -> int:
    """Do the work and show what came of it; a run that was cancelled meanwhile is not done."""
    from contextlib import ExitStack

    from tallystick.cli.commands.runs.progress import progress
    from tallystick.cli.commands.runs.target import load_pipeline
    from tallystick.runs.definition.pipeline import CANCELLED
    from tallystick.runs.orchestrator.start import Surroundings, start_or_resume

    pipeline = load_pipeline(target)
    supplied = _read_inputs(inputs)
    with ExitStack() as closing:
        listeners = [closing.enter_context(progress(quiet=as_json))]
        if telemetry:
            from tallystick.runs.telemetry.client import TelemetryClient

            listeners.append(closing.enter_context(TelemetryClient(telemetry, root)))
        snapshot = start_or_resume(
            pipeline,
            root,
            run_id,
            inputs=supplied,
            parallel=parallel,
            redo=redo,
            fresh=fresh,
            around=Surroundings(listeners=tuple(listeners)),
        )
    _present(snapshot, as_json=as_json)
    if snapshot.run_state != CANCELLED:
        return 0
    message = f"run {run_id} was cancelled before it was done"
    complain(message, {"code": "RUN_CANCELLED", "message": message, "run_id": run_id}, as_json=as_json)
    return 1


def _read_inputs(pairs: tuple[str, ...]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--input {pair!r} must be written NAME=FILE.")
        try:
            found[name] = Path(file).read_bytes()
        except OSError as error:
            raise BadInput(f"the input file {file} cannot be read: {error.strerror}", file=file) from error
    return found


def _present(snapshot: Snapshot, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        show_data(msgspec.to_builtins(snapshot))
    else:
        from tallystick.cli.commands.runs.pages import summary

        show(summary(snapshot))


@command.command("replay")
@click.argument("run_id")
@click.option("--write", is_flag=True, help="Also replace snapshot.json by the result.")
@_common
def replay(run_id: str, root: str, *, write: bool, as_json: bool) -> None:  # noqa: ARG001 (a snapshot is JSON anyway)
    """Rebuild the snapshot of RUN_ID from its log alone and print it, byte for byte."""
    from tallystick.runs.log.inspection import replay_bytes
    from tallystick.runs.orchestrator.start import open_run

    if write:
        with open_run(root, run_id) as recorder:
            recorder.save()
    show_bytes(replay_bytes(root, run_id))


@command.command("show")
@click.argument("run_id", required=False)
@click.option("--events", is_flag=True, help="Print the events instead, one per line.")
@_common
def show_run(run_id: str | None, root: str, *, events: bool, as_json: bool) -> None:
    """Show where RUN_ID stands according to its log, or list all runs."""
    import msgspec

    from tallystick.cli.commands.runs import pages as run_pages
    from tallystick.runs.log import inspection

    if run_id is None:
        runs = [{"run_id": name, "run_state": state} for name, state in inspection.states(root)]
        show_data(runs) if as_json else show(run_pages.listing(runs))
    elif events:
        for event in inspection.events(root, run_id):
            if as_json:
                show_encoded(msgspec.json.encode(event))
            else:
                show(run_pages.event_line(event))
    else:
        _present(inspection.load(root, run_id)[0].snapshot(), as_json=as_json)


@command.command("verify")
@click.argument("run_id")
@_common
@click.pass_context
def verify(context: click.Context, run_id: str, root: str, *, as_json: bool) -> None:
    """Check every byte of the log, the snapshot and the artifacts of RUN_ID; exit 1 if something is wrong."""
    from dataclasses import asdict

    from tallystick.cli.commands.runs.pages import clean
    from tallystick.runs.log import inspection

    report = inspection.verify(root, run_id)
    if as_json:
        show_data({**asdict(report), "sound": report.sound})
    else:
        verdict = "sound" if report.sound else "NOT sound"
        state = clean(report.run_state) or "no believable state"
        show(f"run {run_id} is {verdict}: {report.events} events, {state}")
        for line in report.problems:
            show(f"  problem: {clean(line)}")
        for line in report.notes:
            show(f"  note: {clean(line)}")
    context.exit(0 if report.sound else 1)


@command.command("cancel")
@click.argument("run_id")
@_common
def cancel(run_id: str, root: str, *, as_json: bool) -> None:
    """Cancel RUN_ID; a process that is working on it stops when its current work is done."""
    from tallystick.cli.commands.runs.pages import clean
    from tallystick.runs.orchestrator.start import request_cancel

    state, ended = request_cancel(root, run_id)
    if as_json:
        show_data({"run_id": run_id, "run_state": state, "ended": ended})
    elif ended:
        show(f"run {run_id} is {clean(state)}")
    else:
        tell(f"run {run_id} is {clean(state)}; the process that works on it will stop after its current work")


@command.command("graph")
@click.argument("target")
@click.option("--svg", "svg_file", type=click.Path(dir_okay=False), help="Write an SVG to this file.")
@_common
def graph(target: str, root: str, svg_file: str | None, *, as_json: bool) -> None:
    """Draw a run with its current state, or a pipeline written module:name, as Mermaid text."""
    import msgspec

    from tallystick.cli.commands.runs.target import load_pipeline
    from tallystick.runs.definition import drawing
    from tallystick.runs.log import inspection

    path: list[str] = []
    if ":" in target:
        found = load_pipeline(target).graph
    else:
        view, _ = inspection.load(root, target)
        found, path = view.graph, view.path
    if svg_file:
        try:
            Path(svg_file).write_text(drawing.svg(found, path, target), "utf-8")
        except OSError as error:
            raise BadInput(f"{svg_file} cannot be written: {error.strerror}", file=svg_file) from error
        tell(f"wrote {os.fspath(svg_file)}")
    if as_json:
        data: Mapping[str, object] = {"graph": msgspec.to_builtins(found), "path": path}
        show_data(data)
    elif not svg_file:
        show(drawing.mermaid(found, path).removesuffix("\n"))
