"""`tally show`: one job, with what its user put in and got out, because the user asks for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from tallystick.app.asking.why import explain
from tallystick.app.replay.shown_values import PROGRESS
from tallystick.cli.commands.jobs.list import name_of, summary
from tallystick.cli.place import json_option, looking, url_option, whole_id
from tallystick.cli.render.output import Ink, printable, show, show_data
from tallystick.cli.render.progress_bar import bar
from tallystick.cli.render.wording import ago, instant, short, span, stored_value
from tallystick.clock import SystemClock
from tallystick.core.audit.book import AttemptRow
from tallystick.core.audit.job_view import JobView
from tallystick.core.digits import GuidLedger
from tallystick.core.limits import check_storable
from tallystick.core.remote.listing import artifact_refs
from tallystick.core.remote.rows import ProtocolStep
from tallystick.engine.view import view_of
from tallystick.errors import NotFound
from tallystick.store.api import JobRow, Store

_EXAMPLES = """\b
Examples:
  tally show 01a1e109-dad7-70e7-b72a-a7770e0c41df shop
  tally show 01a1e109-dad7-70e7-b72a-a7770e0c41df --url sqlite:///shop.db --json
"""


@click.command("show", epilog=_EXAMPLES)
@click.argument("job")
@click.argument("app", required=False)
@url_option
@json_option
def command(*, job: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Show one job: where it stands and why, its arguments, its result or error, its attempts.

    The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        job = whole_id(store, job)
        row = find_job(store, job)
        inspection = store.inspect()
        attempts, view = inspection.attempts(job), view_of(inspection, job)
        values = {shown.name: stored_value(shown.value) for shown in store.values([job])}
        now = SystemClock().wall_ms()
        protocol = inspection.protocol(job)
        remotes = [] if row.completed_at else inspection.open_remotes(job)
        remotes = remotes if protocol is None else list(protocol.steps)
        reason = explain(store, row, now)
    if as_json:
        remote_steps = [_remote_data(step) for step in remotes]
        show_data({**as_data(row, view, attempts, reason), "values": values, "remote_steps": remote_steps})
    else:
        ink = Ink.for_stream(sys.stdout)
        lines = drawn(row, view, attempts, reason, now, ink)
        lines += [] if protocol is None else _steps(protocol.steps, ink)
        show("\n".join([*lines, *_shown(values, ink)]))


def _remote_data(step: ProtocolStep) -> dict[str, object]:
    return {
        "stepId": step.step_id,
        "service": step.service,
        "state": step.state,
        "attempt_no": step.attempt_no,
        "acked_at": instant(step.acked_at),
        "until": instant(step.lease_expires_at),
        "last_error_code": step.last_error_code,
        "last_error_message": step.last_error_message,
        "input_ref": _ref(step.input_ref),
        "workspace_ref": _ref(step.workspace_ref),
        "output_ref": _ref(step.output_ref),
        "artifact_refs": artifact_refs(step.notes),
    }


def _ref(text: str | None) -> object:
    return stored_value(text) if text is not None and text.startswith("{") else text


def _steps(steps: Sequence[ProtocolStep], ink: Ink) -> list[str]:
    """Return the steps of a protocol job in their order: where each stands, and what it has left."""
    return [f"  {ink(f'step {step.step_index + 1}'.ljust(10), 'cyan')}  {_step(step)}" for step in steps]


def _step(step: ProtocolStep) -> str:
    told = f"{step.step_id}: {step.state}, service {step.service}"
    told += f", attempt {step.attempt_no}" if step.attempt_no else ""
    told += f" ({step.last_error_code}: {step.last_error_message})" if step.last_error_code else ""
    artifacts = artifact_refs(step.notes)
    left = {"output": step.output_ref, "workspace": step.workspace_ref}
    refs = [f", {name} {text}" for name, text in left.items() if text is not None]
    refs += [] if artifacts is None else [f", artifacts {json.dumps(artifacts, ensure_ascii=False)}"]
    return printable(told + "".join(refs))


def find_job(store: Store, job_id: str) -> JobRow:
    """Return a job or raise `NotFound`."""
    row = store.job(check_storable("job id", job_id))
    if row is None:
        raise NotFound(f"there is no job {short(job_id)} in {store.url}", job_id=job_id)
    return row


def as_data(row: JobRow, view: JobView | None, attempts: list[AttemptRow], reason: str) -> dict[str, object]:
    """Return everything about a job as data."""
    return {
        **summary(row),
        "view": view,
        "why": reason,
        "arguments": stored_value(row.payload),
        "result": stored_value(row.result),
        "error": stored_value(row.error),
        "error_message": row.error_message,
        "hold_reason": row.hold_reason,
        "semaphore": row.semaphore,
        "start_ledger": GuidLedger(row.start_ledger).text,
        "idempotency_key": row.idempotency_key,
        "idempotency_hash": row.idempotency_hash,
        "retry_of": row.retry_of,
        "retried_as": row.retried_as,
        "tags": stored_value(row.tags),
        "attempts": [
            {
                "attempt": attempt.attempt,
                "status": attempt.status,
                "reason": attempt.reason,
                "charged": attempt.charged,
                "lease_owner": attempt.lease_owner,
                "started_at": instant(attempt.started_at),
                "finished_at": instant(attempt.finished_at),
            }
            for attempt in attempts
        ],
    }


def drawn(
    row: JobRow, view: JobView | None, attempts: list[AttemptRow], reason: str, now: int, ink: Ink
) -> list[str]:
    """Return a job as lines for people; why it stands where it does only while it has not ended."""
    ended = (
        f"{ago(row.completed_at, now)}, after {span(row.completed_at - row.created_at)}"
        if row.completed_at
        else ""
    )
    facts = [
        ("state", f"{row.state}, held: {row.hold}" if row.hold else row.state),
        ("view", view or ""),
        ("why", "" if row.completed_at else _lines(reason)),
        ("workflow", name_of(row)),
        ("queue", f"{printable(row.queue)}, priority {row.priority}"),
        ("key", printable(row.idempotency_key or "")),
        ("fork of", row.retry_of or ""),
        ("retried as", row.retried_as or ""),
        ("submitted", f"{instant(row.created_at)}, {ago(row.created_at, now)}"),
        ("due", f"{ago(row.ready_at, now)}" if row.ready_at is not None and row.ready_at > now else ""),
        ("deadline", f"{instant(row.deadline_at)}" if row.deadline_at is not None else ""),
        ("ended", ended),
        ("arguments", _pretty(row.payload)),
        ("result", _pretty(row.result)),
        (
            "error",
            f"{printable(row.error_code or '')}: {_lines(row.error_message)}" if row.error_code else "",
        ),
        ("ledger", f"{GuidLedger(row.start_ledger).text} (start), semaphore {row.semaphore}"),
    ]
    lines = [ink(f"job {row.job_id}", "bold")]
    lines += [f"  {ink(name.ljust(10), 'cyan')}  {text}" for name, text in facts if text]
    lines += [
        f"  {ink(f'attempt {attempt.attempt}'.ljust(10), 'cyan')}  {_told(attempt, now)}"
        for attempt in attempts
    ]
    return lines


def _shown(values: dict[str, object], ink: Ink) -> list[str]:
    """Return what the job shows of itself, how far it is as a bar."""
    texts = {name: (name == PROGRESS and bar(value)) or _json(value) for name, value in values.items()}
    return [f"  {ink(printable(name).ljust(10), 'cyan')}  {text}" for name, text in texts.items()]


def _told(attempt: AttemptRow, now: int) -> str:
    reason = f" ({attempt.reason}{', charged' if attempt.charged else ''})" if attempt.reason else ""
    began = f", began {ago(attempt.started_at, now)}" if attempt.started_at is not None else ""
    took = ""
    if attempt.started_at is not None and attempt.finished_at is not None:
        took = f", took {span(attempt.finished_at - attempt.started_at)}"
    return f"{attempt.status}{reason}{began}{took}, worker {printable(attempt.lease_owner[:12])}"


def _pretty(text: str | None) -> str:
    """Return stored JSON on one line, as a terminal may see it."""
    return "" if text is None else _json(stored_value(text))


def _json(value: object) -> str:
    return printable(json.dumps(value, ensure_ascii=False))


def _lines(text: str | None) -> str:
    return "\n".join(
        f"{'' if n == 0 else ' ' * 14}{printable(line)}" for n, line in enumerate((text or "").split("\n"))
    )
