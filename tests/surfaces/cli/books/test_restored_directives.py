"""No directive of restored books goes out before a person has looked, on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tallystick import RemoteStep, Tally
from tallystick.clock import SystemClock
from tallystick.testing.remote_hand import Heard, RemoteHand, expire_remote
from tallystick.testing.stepping import SteppedWorker, VirtualClock, check_books
from tests.postgres.subject import fresh_schema
from tests.surfaces.commands import Shop

COMMAND = {
    "tenant_id": "default",
    "request_type": "ocr",
    "input_ref": "s3://in/7.pdf",
    "output_ref": "s3://out/7",
    "payload": {},
    "schema_version": "v1",
}


class Scans:
    """A program with a protocol and with a workflow that asks a remote service; it works by hand."""

    def __init__(self, url: str) -> None:
        # The commands go by the clock of the system.
        self.clock = VirtualClock()
        self.clock.jump_wall(SystemClock().wall_ms() - self.clock.wall_ms())
        self.app = Tally(url, clock=self.clock)
        steps = [RemoteStep("ocr", service="ocr"), RemoteStep("embed", service="ocr")]
        self.ocr = self.app.protocol("ocr-embed", request_types=["ocr"], steps=steps)

        @self.app.remote("warehouse")
        def pick(order: int) -> int:
            raise NotImplementedError

        @self.app.workflow
        def order(number: int) -> int:
            return pick(number)

        self.order = order

    def work(self) -> str:
        return SteppedWorker(self.app, self.clock).work()

    def asked(self) -> list[str]:
        """Return the services whose workers are given something."""
        return [name for name in ("ocr", "warehouse") if RemoteHand(self.app, name).look() is not None]


@contextmanager
def scans(url: str) -> Iterator[Scans]:
    made = Scans(url)
    try:
        yield made
    finally:
        made.app.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/scans.db"
    return str(request.getfixturevalue("server").url(schema=fresh_schema()))


def restored(shop: Shop, url: str, tmp_path: Path) -> str:
    """Return the address of books that were restored: a copy of the file, or a server that was told so."""
    if url.startswith("sqlite"):
        assert shop.tally("backup", str(tmp_path / "copy.db"), "--url", url).code == 0
        return f"sqlite:///{tmp_path}/copy.db"
    said = shop.tally("restored", "--url", url)
    assert said.out == "2 jobs held and 0 schedules paused; look, then tally resume --restored\n", said.err
    return url


def test_a_directive_of_a_copy_goes_out_only_after_the_resumption(tmp_path, url):
    shop = Shop(tmp_path)
    with scans(url) as before:
        command, order = before.ocr.submit(COMMAND), before.order.submit(1)
        assert before.work() == "Await"
    copy = restored(shop, url, tmp_path)
    for job in (command, order):
        assert shop.tally("show", job.id, "--url", copy, "--json").data["hold"] == "RESTORED"
    with scans(copy) as after:
        assert after.asked() == []
        assert check_books(after.app) == []
    assert shop.tally("resume", "--restored", "--url", copy).out == "2 jobs and 0 schedules go on\n"
    with scans(copy) as after:
        assert after.asked() == ["ocr", "warehouse"]
        assert check_books(after.app) == []
    assert shop.tally("verify", "--url", copy).code == 0


def test_a_step_that_was_out_may_end_and_the_next_one_waits(tmp_path, url):
    shop = Shop(tmp_path)
    with scans(url) as before:
        job, _order = before.ocr.submit(COMMAND), before.order.submit(1)
        directive = RemoteHand(before.app, "ocr").take()
        directive.ack()
    copy = restored(shop, url, tmp_path)
    with scans(copy) as after:
        taken = RemoteHand(after.app, "ocr")
        known = type(directive)(after.app, directive.row)
        assert known.succeed() is Heard.ACCEPTED
        assert taken.look() is None
        assert check_books(after.app) == []
    shop.tally("resume", "--restored", "--url", copy)
    with scans(copy) as after:
        assert expire_remote(after.app) == 1
        next_one = RemoteHand(after.app, "ocr").look()
        assert next_one is not None
        assert next_one.row.job_id == job.id
        assert check_books(after.app) == []
