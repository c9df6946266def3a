"""Attention lists effects in doubt for which no job is held, and a person says there what came of them."""

from __future__ import annotations

import re

import pytest

from tallystick import Key, Tally
from tallystick.clock import VirtualClock
from tallystick.testing.stepping import SteppedWorker
from tests.surfaces.dashboard.visiting import Site, url_in, visiting

KIND = 'aria-label="Effects without an answer"'


class Shop:
    """A workflow whose effect ends in doubt and has no probe."""

    def __init__(self, folder) -> None:
        clock = VirtualClock()
        self.app = Tally(url_in(folder), clock=clock)
        self.hand = SteppedWorker(self.app, clock)

        @self.app.effect(key="charge:{order}", timeout="2s")
        def charge(key: Key, order: int) -> str:
            raise OSError("cut")

        @self.app.workflow
        def pay(order: int) -> str:
            return charge(order)

        self.pay = pay

    def doubtful(self, order: int, tenant: str = "default"):
        job = self.pay.opts(tenant=tenant).submit(order)
        self.hand.work()
        assert job.row().hold == "IN_DOUBT"
        return job


@pytest.mark.parametrize("force", [False, True], ids=["asked to end", "ended by force"])
def test_an_effect_whose_job_is_not_held_for_it_is_listed_and_answered(tmp_path, force):
    shop = Shop(tmp_path)
    held, job, elsewhere = shop.doubtful(1), shop.doubtful(7), shop.doubtful(9, "acme")
    for each in (job, elsewhere):
        each.cancel(force=force)

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        page = (await visitor.get("/attention")).text
        section = page.partition(KIND)[2].partition("</section>")[0]
        assert (job.id in section, "charge:7" in section, "Say what came of it" in section) == (True,) * 3
        assert (held.id in section, elsewhere.id in page) == (False, False)
        # The page of the job asks for the answer; nothing is called again for a job that ends.
        sheet = (await visitor.get(f"/jobs/{job.id}")).text
        assert f'action="/jobs/{job.id}/resolve"' in sheet
        assert re.search(r"<option[^>]*>did not happen", sheet)
        assert "call it again" not in sheet
        said = {"effect": "charge#1", "says": "did not happen", "value": ""}
        assert (await visitor.post(f"/jobs/{job.id}/resolve", **said)).status_code == 303
        assert KIND not in (await visitor.get("/attention")).text

    visiting(shop.app, test)
