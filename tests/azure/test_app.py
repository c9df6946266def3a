"""A program on Azure Tables: commands, publishers, roles, the command line; all else is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.cli.main import main
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.requests import AckStep, AnswerStep, StepAnswer, StepFence
from tallystick.engine.audit import audit
from tallystick.errors import BadInput, IdempotencyConflict
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
    return app


def a_workflow():
    def checkout(order: int) -> int:
        return order

    return checkout


@pytest.mark.parametrize("kind", ["workflows", "queues"])
def test_what_is_not_kept_here_is_refused_when_the_store_is_bound(kind: str):
    with pytest.raises(BadInput, match=f"{ALONE}: {kind} need SQLite or PostgreSQL"):
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
    assert [job["job_id"] for job in json.loads(tally("list", "--json"))["jobs"]] == [job_id]
    assert json.loads(tally("show", job_id, "--json"))["state"] == "DISPATCHING"
    assert "submitted" in tally("history", job_id)
    assert "ocr" in tally("why", job_id)
    tally("cancel", job_id)
    assert json.loads(tally("show", job_id, "--json"))["state"] == "CANCELLED"
    assert "the books are true" in tally("verify")
    assert "all is well" in tally("doctor")
