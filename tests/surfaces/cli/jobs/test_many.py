"""`--where`, `--tag`, `--older`: a count first, and nothing without a yes."""

from __future__ import annotations

import pytest

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
    assert shop.tally("pause", *yes).data == {"matched": 1, "done": 1}
    assert shop.tally("resume", *yes).data == {"matched": 1, "done": 1}
    # What a word cannot reach is not counted either.
    assert shop.tally("retry", *yes).data == {"matched": 0, "done": 0}
    assert shop.tally("resume", *yes).data == {"matched": 0, "done": 0}


def test_a_state_that_a_word_cannot_reach_reaches_no_job(shop):
    job = shop.submit("shop:checkout", "1")
    assert shop.tally("cancel", "shop", "--where", "state=SUCCEEDED", "--yes").out == "0 jobs cancelled\n"
    assert shop.state(job) == "QUEUED"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cancel", "shop", "--where", "colour=red", "--yes"), "--where takes state=STATE or workflow=NAME"),
        (("cancel", "job", "shop", "--where", "state=QUEUED"), "there is no JOB"),
        (("pause",), "Missing argument 'JOB'"),
        (("cancel", "shop", "--yes"), "--yes goes with --where, --tag or --older"),
        (("resume", "--restored", "shop", "--tag", "vip"), "leave it out to resume what --where"),
        (("resume", "job", "--restored", "--url", "sqlite:///shop.db"), "name no JOB"),
    ],
)
def test_mistakes_are_told(shop, arguments, words):
    said = shop.tally(*arguments)
    assert said.code == 2
    assert words in said.err
