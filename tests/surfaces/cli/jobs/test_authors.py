"""What a person does on the command line names its author: `--by`, or the user of the process."""

from __future__ import annotations

import getpass

from tallystick import Tally
from tests.surfaces.commands import Shop


def acts(shop: Shop) -> list[tuple[str, str, str]]:
    app = Tally(f"sqlite:///{shop.folder}/shop.db")
    found = [(act.about, act.verb, act.who) for act in reversed(app.acts())]
    app.close()
    return found


def test_every_word_to_a_job_a_queue_and_a_schedule_is_kept_with_its_author(tmp_path):
    shop, me = Shop(tmp_path), getpass.getuser()
    job = shop.submit("shop:checkout", "1")
    shop.tally("pause", job, "shop", "--by", "ann")
    shop.tally("resume", job, "shop")
    shop.tally("pause", "shop", "--where", "workflow=checkout", "--yes", "--by", "bob")
    shop.tally("resume", "shop", "--where", "workflow=checkout", "--yes")
    shop.tally("send", job, "approve", "true", "shop", "--by", "fay")
    shop.tally("send", job, "approve", "true", "shop")
    shop.tally("cancel", job, "shop", "--by", "cem")
    shop.tally("queues", "pause", "emails", "shop")
    shop.tally("queues", "set", "emails", "concurrency=5", "shop", "--by", "dan")
    shop.tally("schedules", "add", "shop:checkout", "nightly", "0 3 * * *", "1", "--by", "eve")
    shop.tally("schedules", "pause", "nightly", "shop")
    assert acts(shop) == [
        ("job", "pause", "ann"),
        ("job", "resume", me),
        ("job", "pause", "bob"),
        ("job", "resume", me),
        ("job", "send", "fay"),
        ("job", "send", me),
        ("job", "cancel", "cem"),
        ("queue", "pause", me),
        ("queue", "set", "dan"),
        ("schedule", "add", "eve"),
        ("schedule", "pause", me),
    ]
    history = shop.tally("history", job, "shop").out
    assert all(who in history for who in ("ann", "bob", "cem", me))
