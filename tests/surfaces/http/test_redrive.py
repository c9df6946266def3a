"""A directive that could not be published is redriven over HTTP: by admins, once, and in no other tenant."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from tallystick import Webhook
from tallystick.core.remote.plans import Hearing
from tallystick.core.remote.requests import NotPublished, StepFence, TakeDirective
from tests.surfaces.http.served import COMMAND, World, serving, sqlite_url

SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


async def dead_letter(world: World) -> tuple[str, str]:
    """Let a job fail because its service will never take its directive; return it and the directive."""
    made = await world.known("acme")("POST", "/v1/commands", json=COMMAND)
    job_id = made.json()["jobId"]
    committer = world.app.runtime().committer
    heard = committer.call((TakeDirective(job_id, "ocr", 1),))
    assert isinstance(heard, Hearing)
    row = heard.directive
    assert row is not None
    fence = StepFence(job_id, "ocr", 1, row.lease_id)
    committer.call((NotPublished(fence, row.tries, "410 Gone", final=True),))
    return job_id, row.outbox_id


def test_a_dead_letter_is_redriven_by_an_admin_of_its_tenant_or_of_all(tmp_path: Path):
    async def test(world: World) -> None:
        world.app.service("ocr", via=Webhook("https://ocr.example/d", secret=SECRET))
        job_id, dead = await dead_letter(world)
        path = f"/v1/outbox/{quote(dead, safe='')}/redrive"
        strangers = {
            ("acme", ("jobs:read", "jobs:write", "work")): (403, "NOT_ALLOWED"),
            ("other", ("admin",)): (404, "NOT_FOUND"),
        }
        for (tenant, scopes), refused in strangers.items():
            answer = await world.known(tenant, scopes)("POST", path, json={})
            assert (answer.status_code, answer.json()["code"]) == refused, tenant
        made = await world.known("acme", ("admin",))("POST", path, json={})
        again = await world.known("*", ("admin",))("POST", path, json={})
        assert (made.status_code, again.status_code) == (202, 200)
        assert made.json()["jobId"] == again.json()["jobId"] != job_id
        living = await world.known("acme", ("admin",))(
            "POST", f"/v1/outbox/{made.json()['jobId']}:ocr:1/redrive", json={}
        )
        assert (living.status_code, living.json()["code"]) == (409, "NOT_FAILED")

    serving(sqlite_url(tmp_path), test)


def test_the_identifier_of_a_directive_of_a_workflow_may_have_its_slash(tmp_path: Path):
    async def test(world: World) -> None:
        admin = world.known("acme", ("admin",))
        for name in ("job:0/pick#1:1", quote("job:0/pick#1:1", safe=""), "job:0/pick%231:1"):
            answer = await admin("POST", f"/v1/outbox/{quote(name, safe='/%:')}/redrive", json={})
            assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")

    serving(sqlite_url(tmp_path), test)
