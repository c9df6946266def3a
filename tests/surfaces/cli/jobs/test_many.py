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
    assert (done.code, done.out) == (0, "2 jobs matched, cancel: 2\n")
    assert {shop.state(job) for job in jobs} == {"CANCELLED"}
    assert shop.state(other) == "QUEUED"


def test_many_are_paused_and_resumed_by_tag(shop):
    shop.submit("shop:checkout", "1", "--tag", "vip")
    shop.submit("shop:checkout", "2")
    yes = ("shop", "--tag", "vip", "--yes", "--json")
    assert shop.tally("pause", *yes).data == {"matched": 1, "done": 1}
    assert shop.tally("resume", *yes).data == {"matched": 1, "done": 1}
    assert shop.tally("retry", *yes).data == {"matched": 1, "done": 0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cancel", "shop", "--where", "colour=red", "--yes"), "--where takes state=STATE or workflow=NAME"),
        (("cancel", "job", "shop", "--where", "state=QUEUED"), "there is no JOB"),
        (("pause",), "Missing argument 'JOB'"),
    ],
)
def test_mistakes_are_told(shop, arguments, words):
    said = shop.tally(*arguments)
    assert said.code == 2
    assert words in said.err
