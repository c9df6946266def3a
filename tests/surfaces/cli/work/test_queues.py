"""`tally queues`: what a person does about a queue is durable when the command has ended."""

from __future__ import annotations

import json

import pytest

from tallystick import Tally
from tests.surfaces.commands import Shop

LIMITED = """
from tallystick import Tally

app = Tally("sqlite:///shop.db")
app.queue("emails", concurrency=20)

@app.workflow(queue="emails")
def mail(name: str) -> str:
    return name
"""


def mail(name: str) -> str:
    return name


@pytest.fixture
def shop(tmp_path) -> Shop:
    made = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(LIMITED)
    return made


def test_limits_of_a_queue_are_set_shown_paused_resumed_and_reset(shop: Shop):
    assert shop.tally("submit", "shop:mail", "name=ada").code == 0
    assert shop.tally("queues", "list", "shop").out == "no queue has limits or is paused\n"
    made = shop.tally("queues", "set", "emails", "concurrency=5", "rate=100/1m", "shop")
    assert made.out == "emails  concurrency=5* rate=100/1m*  0 running\n", made.err
    (listed,) = json.loads(shop.tally("queues", "list", "shop", "--json").out)
    assert (listed["limits"]["concurrency"], listed["declared"], listed["running"]) == (5, False, 0)
    assert "paused by ann since 2" in shop.tally("queues", "pause", "emails", "shop", "--by", "ann").out
    assert "paused" not in shop.tally("queues", "resume", "emails", "shop").out
    assert "concurrency=None*" in shop.tally("queues", "set", "emails", "concurrency=none", "shop").out
    assert shop.tally("queues", "reset", "emails", "shop").out == "emails  no limits  0 running\n"


def test_what_is_no_limit_of_a_queue_is_refused(shop: Shop):
    assert shop.tally("submit", "shop:mail", "name=ada").code == 0
    for word, why in (
        ("size=3", "'size=3' is not a limit"),
        ("concurrency=0", "concurrency=0: it is a whole number from 1 to 1,000,000, or None"),
        ("concurrency=many", "concurrency='many': it is a whole number from 1 to 1,000,000, or None"),
        ("burst=true", "burst=True: it is a whole number from 1 to 1,000,000"),
        ("rate=often", "rate='often': write how many jobs may begin in which time"),
        ("order=lifo", "order='lifo': it is 'priority' or 'fifo'"),
        ("hold_slots=maybe", "hold_slots='maybe': it is True or False"),
    ):
        refused = shop.tally("queues", "set", "emails", word, "shop")
        assert (refused.code, why in refused.err) == (4, True), refused.err
    without = shop.tally("queues", "set", "emails", "shop")
    assert without.code == 2
    assert "Missing argument 'LIMIT=VALUE...'" in without.err
    missing = shop.tally("queues", "resume", "emails", "shop")
    assert missing.code == 3
    assert "the queue emails is not paused, and no limits were declared or set for it" in missing.err
    assert "hold_slots=True*" in shop.tally("queues", "set", "emails", "hold_slots=True", "shop").out


def test_the_doctor_names_paused_queues_and_schedules_that_are_no_longer_declared(shop: Shop, tmp_path):
    program = tmp_path / "shop.py"
    program.write_text(
        LIMITED.replace("@app.workflow", '@app.schedule("every 1h", args=["x"])\n@app.workflow')
    )
    assert shop.tally("submit", "shop:mail", "name=ada").code == 0
    app = Tally(f"sqlite:///{tmp_path}/shop.db")
    app.schedule("every 1h", args=["x"])(app.workflow(mail))
    app.declare_schedules()
    app.close()
    shop.tally("queues", "pause", "emails", "shop", "--by", "ann")
    seen = shop.tally("doctor", "shop").out
    assert "the queue emails has been paused by ann since 2" in seen
    assert "no longer declared" not in seen
    program.write_text(LIMITED)
    assert "the schedule mail is no longer declared, and goes on" in shop.tally("doctor", "shop").out
