"""A program on Azure Tables: commands, publishers, roles, the command line; all else is refused."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tallystick import Job, Key, Tally
from tallystick.app.remote.redriving import redrive
from tallystick.app.running.restoring import resume_restored
from tallystick.cli.main import main
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    NotPublished,
    StepAnswer,
    StepFence,
)
from tallystick.engine.audit import audit
from tallystick.errors import BadInput, IdempotencyConflict
from tallystick.store.sql.restoring import hold_restored
from tests.patience import wait_until
from tests.remote.receiver import Receiver, receiving
from tests.remote.test_publish import command, declare, look, webhook

NOWHERE = "azure://shop/tally"
ALONE = "Azure Tables keep protocol jobs alone"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def declared(kind: str) -> Tally:
    app = Tally()
    match kind:
        case "workflows":
            app.workflow(a_workflow())
        case "queues":
            app.queue("mail", concurrency=1)
        case "workflows and schedules":
            app.schedule("0 3 * * *")(app.workflow(a_workflow(0)))
        case "effects":
            app.effect(key="mail:{order}")(an_effect())
        case "removals (keep=)":
            app = Tally(keep="30d")
    return app


def a_workflow(first: int | None = None):
    def checkout(order: int | None = first) -> int | None:
        return order

    return checkout


def an_effect():
    def mail(_key: Key, order: int) -> None:
        pass

    return mail


@pytest.mark.parametrize(
    "kind", ["workflows", "queues", "workflows and schedules", "effects", "removals (keep=)"]
)
def test_what_is_not_kept_here_is_refused_when_the_store_is_bound(kind: str):
    with pytest.raises(BadInput, match=re.escape(f"{ALONE}: {kind} need SQLite or PostgreSQL")):
        declared(kind).bind(NOWHERE)


@pytest.mark.slow
def test_workflows_and_transactions_are_refused_by_an_open_store(azure_url: str):
    app = Tally(azure_url)
    app.runtime()
    with pytest.raises(BadInput, match=ALONE):
        app.workflow(a_workflow()).submit(7)
    with pytest.raises(BadInput, match=ALONE), app.transaction():
        pass
    app.close()


REFUSED: dict[str, tuple[str, Callable[[Tally, Job[Any]], object]]] = {
    "retry": ("forks, retries and redrives need", lambda _app, job: job.retry()),
    "fork": ("forks, retries and redrives need", lambda _app, job: job.fork(at="s0")),
    "redrive": ("forks, retries and redrives need", lambda app, job: redrive(app, f"{job.id}:s0:1")),
    "prune": ("removals .prune. need", lambda app, _job: app.prune(older_than="1d")),
    "pause": ("pauses need", lambda _app, job: job.pause()),
    "resume": ("pauses need", lambda _app, job: job.resume()),
    "send": ("signals need", lambda _app, job: job.send("go", 1)),
    "resolve": ("keeps no effects;", lambda app, _job: app.resolve(key="k", did_not_happen=True)),
    "schedules": ("keeps no schedules;", lambda app, _job: app.schedules.all()),
    "queues": ("keeps no limits of queues;", lambda app, _job: app.queues.all()),
    "restored": ("keeps protocol jobs alone,", lambda app, _job: hold_restored(app.runtime().store)),
    "resume --restored": ("keeps no schedules;", lambda app, _job: resume_restored(app)),
}


def failed(app: Tally) -> Job[Any]:
    """Return a job whose directive could not be published."""
    job = app.command(command())
    fence = StepFence(job.id, "s0", 1, look(app, job.id).steps[0].lease_id or "")
    for tries in (0, 1):  # a submission that is to publish has taken it already
        app.runtime().committer.call((NotPublished(fence, tries, "gone", final=True),))
    assert job.state() == "FAILED_FINAL"
    return job


@pytest.mark.slow
def test_what_is_asked_of_an_open_store_and_not_kept_is_refused_with_a_sentence(
    azure_url: str, receiver: Receiver
):
    app = declare(azure_url, scan=webhook(receiver))
    job = failed(app)
    for name, (said, ask) in REFUSED.items():
        with pytest.raises(BadInput, match=said) as refused:
            ask(app, job)
        assert "SQLite" in str(refused.value), name
        assert "PostgreSQL" in str(refused.value), name
    app.close()


@pytest.mark.slow
def test_directives_go_out_and_reports_come_in(azure_url: str, receiver: Receiver):
    app = declare(azure_url, scan=webhook(receiver))
    with app.worker():
        job = app.command(command())
        assert app.command(command()).id == job.id
        app.command(command(2, idempotency_key="one"))
        with pytest.raises(IdempotencyConflict):
            app.command(command(3, idempotency_key="one"))
        wait_until(lambda: look(app, job.id).steps[0].state == "AWAITING_ACK")
        said = next(got.directive for got in receiver.got if got.directive["jobId"] == job.id)
        fence = StepFence(job.id, "s0", 1, said["lease_id"])
        for request in (AckStep(fence), AnswerStep(fence, StepAnswer(True, "d", value="7"), "l2")):
            heard = app.runtime().committer.call((request,))
            assert isinstance(heard, Hearing)
            assert heard.heard is Heard.ACCEPTED
        assert job.result(timeout=20) == 7
    assert audit(app.runtime().store).findings == []
    app.close()


PROGRAM = """
from tallystick import RemoteStep, Tally

app = Tally()
app.protocol("p", request_types=["scan"], steps=[RemoteStep("s0", service="ocr")])
"""


@pytest.mark.slow
def test_the_command_line_looks_after_these_jobs(
    azure_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "azure_scans.py").write_text(PROGRAM)
    (tmp_path / "command.json").write_text(json.dumps(command(tenant_id="default")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TALLY_URL", azure_url)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def tally(*words: str) -> str:
        assert main(words) == 0
        return capsys.readouterr().out

    job_id = tally("command", "azure_scans", "command.json").split()[0]
    listed = json.loads(tally("list", "--tenant", "default", "--json"))["jobs"]
    assert [job["job_id"] for job in listed] == [job_id]
    assert main(["list"]) == BadInput.exit_code
    assert "listed for one tenant" in capsys.readouterr().err
    assert json.loads(tally("show", job_id, "--json"))["state"] == "DISPATCHING"
    assert "submitted" in tally("history", job_id)
    assert "ocr" in tally("why", job_id)
    tally("cancel", job_id)
    assert json.loads(tally("show", job_id, "--json"))["state"] == "CANCELLED"
    assert "the books are true" in tally("verify")
    assert "all is well" in tally("doctor")
    assert main(["restored"]) == BadInput.exit_code
    assert "tally restored is for SQLite and PostgreSQL" in capsys.readouterr().err
