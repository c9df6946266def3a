"""`tally submit`: a call of a workflow, written on the command line, becomes a job."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from tallystick.app.api.job import Job
from tallystick.app.api.tally import Tally
from tallystick.app.values.annotations import hints_of_function
from tallystick.app.values.signature import Signature
from tallystick.cli.given import given_json
from tallystick.cli.loading import AnyWorkflow, declared_queues, load_workflow
from tallystick.cli.place import announce_creation, json_option, url_option
from tallystick.cli.render.output import complain, show, show_data, show_line, tell
from tallystick.cli.render.wording import ago, short, stored_value
from tallystick.clock import SystemClock
from tallystick.core.durations import duration_ms
from tallystick.core.json_forms.strict_json import Json, decode_strict
from tallystick.defaults import PRIORITY
from tallystick.engine.submission import Submission
from tallystick.errors import BadInput, BadJson, JobCancelled, JobFailed, StoreMissing

_NAMED: Final = re.compile(r"([^\W\d]\w*)=(.*)", re.DOTALL)

_EXAMPLES = """\b
Examples:
  tally submit shop:checkout 42
  tally submit shop:checkout order=42 --key o-42
  tally submit shop:checkout '{"order": 42}' --wait
  tally submit shop:app:checkout - < arguments.json
"""


@click.command("submit", epilog=_EXAMPLES)
@click.argument("workflow", metavar="APP:WORKFLOW")
@click.argument("words", metavar="[ARGS_JSON | KEY=VALUE...]", nargs=-1)
@click.option("--key", metavar="KEY", help="Submit once for this key; other content under it is an error.")
@click.option("--idempotent", is_flag=True, help="Submit once for these arguments.")
@click.option("--version", "version", metavar="VERSION", help="Which version, where there are several.")
@click.option("--queue", metavar="QUEUE", help="The queue to wait in.")
@click.option("--priority", type=int, metavar="N", help="0 (first) to 9 (last); 5 unless told.")
@click.option("--delay", metavar="DURATION", help="Start no earlier than after this time, e.g. 15m.")
@click.option("--deadline", metavar="DURATION", help="Give up after this time.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Tag it; may be given more than once.")
@click.option("--wait", is_flag=True, help="Wait for the end and print the result.")
@click.option("--timeout", metavar="DURATION", help="With --wait: wait no longer than this.")
@url_option
@json_option
def command(
    *,
    workflow: str,
    words: tuple[str, ...],
    version: str | None,
    url: str | None,
    **options: Any,  # noqa: ANN401 (as declared above, one by one)
) -> int:
    """Submit a job and print its id.

    The arguments are one JSON value (an object holds them by name, an array by position, anything else is
    the only one), KEY=VALUE pairs (the value is text for a parameter annotated as str, else JSON, else text),
    or - for JSON on stdin.
    """
    if options["timeout"] is not None and not options["wait"]:
        raise click.UsageError("--timeout is about --wait; give both.")
    if options["timeout"] is not None:
        # Now, because after the submission there is a job, whatever the exit code says.
        duration_ms(options["timeout"])
    loaded, found = load_workflow(workflow, version)
    args, kwargs = read_arguments(found, words)
    ready = found.opts(
        idempotency_key=options["key"],
        idempotent=options["idempotent"] or None,
        queue=options["queue"],
        priority=options["priority"],
        delay=options["delay"],
        deadline=options["deadline"],
        tags=options["tags"] or None,
    )
    args, kwargs = _checked(ready, args, kwargs, options["key"], options["priority"])
    if url is not None:
        loaded.app.bind(url)
    if options["queue"] and not options["as_json"]:
        _mention_lonely(loaded.app, options["queue"])
    try:
        loaded.app.runtime(create=False)
    except StoreMissing as missing:
        announce_creation(missing)
    try:
        job = ready.submit(*args, **kwargs)
        if options["wait"]:
            return _wait(job, options["timeout"], as_json=options["as_json"])
        return _report(job, as_json=options["as_json"])
    finally:
        loaded.app.close()


def _mention_lonely(app: Tally, queue: str) -> None:
    """Say when a worker has to be told of this queue, because no workflow declares it."""
    if queue not in declared_queues(app):
        tell(f"no workflow declares the queue {short(queue)}; a worker serves it if --queues names it")


def _checked(
    workflow: AnyWorkflow,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    key: str | None,
    priority: int | None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments as the function takes them; refuse a wrong call before there is a file for it.

    The submitter learns of a wrong argument, not the worker that meets it days later.
    """
    signature = Signature(workflow.fn)
    payload = signature.encode_data(args, kwargs)
    placed, named = signature.decode(payload)
    Submission(
        handler=workflow.name,
        payload=payload,
        queue=workflow.queue,
        priority=PRIORITY if priority is None else priority,
        idempotency_key=key,
    )
    return tuple(placed), named


def read_arguments(workflow: AnyWorkflow, words: tuple[str, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and named arguments that the words mean."""
    pairs = [_NAMED.fullmatch(word) for word in words]
    if words and all(pairs):
        hints = hints_of_function(workflow.fn)
        named: dict[str, Any] = {}
        for name, text in (pair.groups() for pair in pairs if pair):
            if name in named:
                raise BadInput(f"the argument {name} is given twice", name=name)
            named[name] = text if hints.get(name) is str else _value(name, text)
        return (), named
    if len(words) > 1:
        raise BadInput("give one JSON value, or only KEY=VALUE pairs", words=len(words))
    if not words:
        return (), {}
    value = given_json(words[0], ", or the name of its argument: NAME=VALUE")
    match value:
        case dict():
            return (), value
        case list():
            return tuple(value), {}
        case _:
            return (value,), {}


def _value(name: str, text: str) -> Json:
    try:
        return decode_strict(text.encode("utf-8", "surrogateescape"))
    except BadJson as error:
        # What begins like JSON was meant as JSON, and a typing mistake in it must not become text.
        if text[:1] in ("{", "[", '"'):
            raise BadJson(f"{name}: {error.message}", name=name) from None
    return text


def _report(job: Job[Any], *, as_json: bool) -> int:
    created_at = job.row().created_at
    if as_json:
        show_data({"job_id": job.id, "created": job.created, "state": job.state().value})
        return 0
    if not job.created:
        tell(f"already submitted, {ago(created_at, SystemClock().wall_ms())}")
    show(job.id)
    return 0


def _wait(job: Job[Any], timeout: str | None, *, as_json: bool) -> int:
    """Wait for the end: the result goes to stdout, everything else to stderr."""
    if not as_json:
        known = (
            ""
            if job.created
            else f" (already submitted, {ago(job.row().created_at, SystemClock().wall_ms())})"
        )
        tell(f"waiting for job {job.id}{known}")
    try:
        job.result(timeout)
    except TimeoutError:
        message = f"job {job.id} has not ended within {timeout}; it goes on without us"
        complain(message, {"code": "TIMEOUT", "message": message, "job_id": job.id}, as_json=as_json)
        return 1
    except (JobFailed, JobCancelled) as error:
        if as_json:
            show_line({"job_id": job.id, "created": job.created, "state": job.state().value} | error.fields)
        complain(short(error.message, 2_000), error.as_dict(), as_json=as_json)
        return error.exit_code
    row = job.row()
    result = stored_value(row.result)
    if as_json:
        data = {"job_id": job.id, "created": job.created, "state": row.state, "result": result}
        show_data(data)
    else:
        show_line(result)
    return 0
