"""What no store can hold is answered alike by both: nothing can be called that."""

from __future__ import annotations

import pytest

from tallystick import Fatal, JobFailed
from tallystick.errors import BadName

UNSTORABLE = pytest.mark.parametrize("text", ["a\0b", "a\udcffb", 5], ids=["NUL", "surrogate", "no text"])

BY_ID = {
    "state": lambda app, text: app.job(text).state(),
    "history": lambda app, text: app.job(text).history(),
    "result": lambda app, text: app.job(text).result(1),
    "send": lambda app, text: app.job(text).send("go"),
    "cancel": lambda app, text: app.job(text).cancel(),
    "pause": lambda app, text: app.job(text).pause(),
    "fork": lambda app, text: app.job(text).fork(at="charge"),
    "retry": lambda app, text: app.job(text).retry(),
    "send_many": lambda app, text: app.send_many([app.job(text)], "go"),
    "jobs after": lambda app, text: app.jobs(after=app.job(text)),
}
BY_NAME = {
    "tag": lambda app, text: app.jobs(tag=text),
    "workflow": lambda app, text: app.jobs(workflow=text),
    "dead workflow": lambda app, text: app.dead(workflow=text),
}


@UNSTORABLE
@pytest.mark.parametrize("ask", [*BY_ID.values(), *BY_NAME.values()], ids=[*BY_ID, *BY_NAME])
def test_nothing_is_called_what_no_store_can_hold(app, ask, text):
    with pytest.raises(BadName, match="use a text without NUL"):
        ask(app, text)


@UNSTORABLE
@pytest.mark.parametrize(
    "ask",
    [
        lambda job, text: job.send(text),
        lambda job, text: job.send("go", id=text),
        lambda job, text: job.fork(at=text),
        lambda job, text: job.fork(at="charge", version=text),
        lambda job, text: job.fork(at="charge", id=text),
    ],
    ids=["signal", "signal id", "fork at", "fork version", "fork id"],
)
def test_a_job_is_told_nothing_that_no_store_can_hold(app, ask, text):
    @app.workflow
    def flow() -> None: ...

    with pytest.raises(BadName):
        ask(flow.submit(), text)


def test_a_reason_that_no_store_can_hold_is_kept_without_what_cannot_be(app):
    @app.workflow
    def flow() -> None: ...

    job = flow.submit()
    job.pause("a\0b\udcffc")
    assert job.row().hold_reason == "a?b?c"


def test_an_error_whose_text_no_store_can_hold_fails_its_job_with_what_can_be(timed, hand):
    @timed.workflow
    def flow() -> None:
        raise Fatal("a\0b\udcffc")

    job = flow.submit()
    hand.work()
    with pytest.raises(JobFailed, match=r"a\?b\?c"):
        job.result(5)
