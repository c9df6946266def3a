"""`--where`, `--tag`, `--older`: a count first, and nothing without a yes."""

from __future__ import annotations

import pytest

from tallystick import Fatal, Tally
from tallystick.testing.stepping import SteppedWorker, VirtualClock
from tests.surfaces.commands import Shop


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


def test_nothing_is_done_before_somebody_has_said_yes(shop):
    jobs = [shop.submit("shop:checkout", str(n)) for n in range(2)]
    other = shop.submit("shop:letter", '"Ada"')
    asked = shop.tally("cancel", "shop", "--where", "workflow=checkout")
    assert (asked.code, asked.err) == (4, "error: 2 jobs match; say --yes to cancel them\n")
    assert {shop.state(job) for job in jobs} == {"QUEUED"}
    done = shop.tally("cancel", "shop", "--where", "workflow=checkout", "--yes")
    assert (done.code, done.out) == (0, "2 jobs cancelled\n")
    assert {shop.state(job) for job in jobs} == {"CANCELLED"}
    assert shop.state(other) == "QUEUED"


def test_many_are_paused_and_resumed_by_tag(shop):
    shop.submit("shop:checkout", "1", "--tag", "vip")
    shop.submit("shop:checkout", "2")
    yes = ("shop", "--tag", "vip", "--yes", "--json")
    assert shop.tally("pause", *yes).data == {"matched": 1, "done": 1, "passed_by": 0}
    assert shop.tally("resume", *yes).data == {"matched": 1, "done": 1, "passed_by": 0}
    # What a word cannot reach is not counted either.
    assert shop.tally("retry", *yes).data == {"matched": 0, "done": 0, "passed_by": 0}
    assert shop.tally("resume", *yes).data == {"matched": 0, "done": 0, "passed_by": 0}


def test_a_failed_job_whose_key_another_has_is_passed_by_and_named(shop):
    lost, kept, other = _failed(shop)
    done = shop.tally("retry", "shop", "--where", "workflow=fails", "--yes")
    assert (done.code, done.out) == (0, "2 jobs retried; 1 job passed by: tally retry JOB says why\n")
    again = shop.tally("retry", "shop", "--where", "workflow=fails", "--where", "state=FAILED_FINAL", "--yes")
    assert again.out == "0 jobs retried; 1 job passed by: tally retry JOB says why\n"
    refused = shop.tally("retry", lost, "shop", "--json")
    assert (refused.code, refused.error["code"]) == (4, "KEY_MOVED")
    assert refused.error["holder"] not in (lost, other)
    assert kept != lost


def _failed(shop: Shop) -> list[str]:
    """Let three jobs fail of which the first two were under one key."""
    clock = VirtualClock()
    app = Tally(f"sqlite:///{shop.folder}/shop.db", clock=clock)

    @app.workflow
    def fails(why: str) -> None:
        raise Fatal(why)

    hand, jobs = SteppedWorker(app, clock), []
    for workflow in (*[fails.opts(idempotency_key="k", reuse="after_end")] * 2, fails):
        jobs.append(workflow.submit("no").id)
        hand.work()
    app.close()
    return jobs


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        (("--where", "queue=bulk"), {2, 3}),
        (("--where", "queue=bulk", "--tag", "vip"), {2}),
        (("--where", "key=order-1"), {1}),
        (("--where", "key=order-9"), set()),
        (("--where", "held=yes"), {3}),
        (("--where", "held=yes", "--where", "queue=default"), set()),
        (("--where", "parent=nothing"), set()),
        (("--where", "error=label"), set()),
        (("--since", "1h"), {1, 2, 3}),
        (("--since", "1h", "--until", "30m"), set()),
        (("--until", "2127-01-31T03:00:00Z", "--tag", "vip"), {2}),
        (("--everything",), {1, 2, 3}),
        (("--everything", "--tenant", "acme"), {4}),
        (("--where", "queue=bulk", "--tenant", "*"), {2, 3, 4}),
        (("--everything", "--tenant", "*"), {1, 2, 3, 4}),
    ],
)
def test_each_filter_reaches_the_jobs_that_it_names(shop, filters, numbers):
    jobs = dict(enumerate(_mixed(shop), start=1))
    counted = shop.tally("cancel", "shop", *filters)
    assert (counted.code, f"{len(numbers)} job" in counted.err) == (4, True), counted.err
    assert shop.tally("cancel", "shop", *filters, "--yes").code == 0
    ended = {number for number, job in jobs.items() if shop.state(job) == "CANCELLED"}
    assert ended == numbers


def test_a_time_that_is_none_is_refused(shop):
    job = shop.submit("shop:checkout", "1")
    said = shop.tally("cancel", "shop", "--since", "yesterday", "--yes")
    assert (said.code, "'yesterday' is not an instant" in said.err) == (4, True), said.err
    assert shop.state(job) == "QUEUED"


def _mixed(shop: Shop) -> list[str]:
    """Submit four jobs that differ in what they can be found by."""
    app = Tally(f"sqlite:///{shop.folder}/shop.db")

    @app.workflow
    def checkout(order: int) -> None: ...

    jobs = [
        checkout.opts(idempotency_key="order-1").submit(1),
        checkout.opts(queue="bulk", tags=["vip"]).submit(2),
        checkout.opts(queue="bulk").submit(3),
        checkout.opts(queue="bulk", tenant="acme").submit(4),
    ]
    jobs[2].pause()
    app.close()
    return [job.id for job in jobs]


def test_failed_jobs_are_retried_by_the_text_of_their_error(shop):
    _failed(shop)
    counted = shop.tally("retry", "shop", "--where", "error=N", "--where", "workflow=fails")
    assert counted.err == "error: 3 jobs match; say --yes to retry them\n"
    assert shop.tally("retry", "shop", "--where", "error=something else", "--yes").out == "0 jobs retried\n"


def test_a_state_that_a_word_cannot_reach_reaches_no_job(shop):
    job = shop.submit("shop:checkout", "1")
    assert shop.tally("cancel", "shop", "--where", "state=SUCCEEDED", "--yes").out == "0 jobs cancelled\n"
    assert shop.state(job) == "QUEUED"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("cancel", "shop", "--where", "colour=red", "--yes"),
            "--where takes NAME=VALUE with one of state, workflow, queue",
        ),
        (("cancel", "job", "shop", "--where", "state=QUEUED"), "there is no JOB"),
        (("pause",), "Missing argument 'JOB'"),
        (("cancel", "shop", "--where", "held=no", "--yes"), "--where takes held=yes"),
        (("cancel", "shop", "--where", "queue=a", "--where", "queue=b"), "--where names one queue"),
        (("cancel", "shop", "--everything", "--tag", "vip"), "--everything is all jobs of the tenant"),
        (("cancel", "shop", "--yes"), "--yes goes with --where, --tag, --older"),
        (("resume", "--restored", "shop", "--tag", "vip"), "leave it out to resume what filters find"),
        (("resume", "job", "--restored", "--url", "sqlite:///shop.db"), "name no JOB"),
    ],
)
def test_mistakes_are_told(shop, arguments, words):
    said = shop.tally(*arguments)
    assert said.code == 2
    assert words in said.err
