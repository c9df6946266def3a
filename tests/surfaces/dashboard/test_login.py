"""Who is let in: by a key or a link that opens once, for twelve hours, and no longer than the key."""

from __future__ import annotations

import pytest

from tallystick import Tally
from tallystick.clock import VirtualClock
from tallystick.dashboard.sessions import FAILURES_MAX, SESSION_SECONDS
from tallystick.store.api import RevokeKey
from tests.surfaces.dashboard.visiting import Site, url_in, visiting


@pytest.fixture
def app(tmp_path):
    return Tally(url_in(tmp_path))


def test_nobody_sees_a_page_without_a_session(app):
    async def test(site: Site) -> None:
        stranger = site.stranger()
        for path in ("/", "/jobs", "/overview", "/jobs/one"):
            answer = await stranger.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert (await stranger.get("/live")).status_code == 401
        stranger.http.cookies.set("tallystick_session", "0" * 64)
        assert (await stranger.get("/jobs")).status_code == 303

    visiting(app, test)


def test_a_key_opens_a_session_that_scripts_and_other_sites_cannot_use(app):
    async def test(site: Site) -> None:
        answer = await site.stranger().log_in(site.key())
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"].lower()
        for part in ("httponly", "samesite=strict", f"max-age={SESSION_SECONDS}", "path=/"):
            assert part in cookie
        assert "secure" not in cookie
        wrong = await site.stranger().log_in(f"{site.key().partition('.')[0]}.{'0' * 64}")
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)

    visiting(app, test)


def test_the_cookie_is_for_tls_alone_where_browsers_come_by_it(app):
    async def test(site: Site) -> None:
        answer = await site.stranger().log_in(site.key())
        assert "secure" in answer.headers["set-cookie"].lower()

    visiting(app, test, secure=True)


def test_what_is_kept_of_a_session_does_not_open_it(app):
    async def test(site: Site) -> None:
        visitor = await site.visitor()
        secret = visitor.http.cookies["tallystick_session"]
        assert secret not in site.pages.sessions._sessions
        (kept,) = site.pages.sessions._sessions
        visitor.http.cookies.set("tallystick_session", kept)
        assert (await visitor.get("/jobs")).status_code == 303

    visiting(app, test)


def test_a_link_opens_once(app):
    async def test(site: Site) -> None:
        link = site.pages.link()
        first, second = site.stranger(), site.stranger()
        assert (await first.get(link)).status_code == 303
        assert (await first.get("/overview")).status_code == 200
        assert (await second.get(link)).status_code == 401
        assert (await second.get("/overview")).status_code == 303

    visiting(app, test)


def test_a_session_ends_after_twelve_hours(tmp_path):
    clock = VirtualClock()
    app = Tally(url_in(tmp_path), clock=clock)

    async def test(site: Site) -> None:
        visitor = await site.visitor()
        clock.advance((SESSION_SECONDS - 1) * 1000)
        assert (await visitor.get("/jobs")).status_code == 200
        clock.advance(1000)
        assert (await visitor.get("/jobs")).status_code == 303

    visiting(app, test)


def test_a_session_ends_with_its_key_and_with_a_logout(app):
    async def test(site: Site) -> None:
        key = site.key()
        one, two = site.stranger(), site.stranger()
        await one.log_in(key)
        await two.log_in(key)
        assert (await one.post("/logout")).status_code == 303
        assert (await one.get("/jobs")).status_code == 303
        assert (await two.get("/jobs")).status_code == 200
        site.app.runtime().committer.call((RevokeKey(key.partition(".")[0]),))
        assert (await two.get("/jobs")).status_code == 303

    visiting(app, test)


def test_an_address_that_tries_key_after_key_has_to_wait(tmp_path):
    clock = VirtualClock()
    app = Tally(url_in(tmp_path), clock=clock)

    async def test(site: Site) -> None:
        stranger = site.stranger()
        for number in range(FAILURES_MAX):
            tried = stranger.log_in("no.key") if number % 2 else stranger.get("/login/no-link")
            assert (await tried).status_code == 401
        for refused in (await stranger.log_in("no.key"), await stranger.get("/login/no-link")):
            assert (refused.status_code, "set-cookie" in refused.headers) == (429, False)
        clock.advance(61_000)
        assert (await stranger.log_in("no.key")).status_code == 401

    visiting(app, test)


def test_a_right_key_and_a_link_open_whatever_others_behind_the_same_proxy_have_sent(app):
    async def test(site: Site) -> None:
        stranger, colleague = site.stranger(), site.stranger()
        key, link = site.key(), site.pages.link()
        for _ in range(FAILURES_MAX + 5):
            refused = await stranger.log_in("no.key")
        assert refused.status_code == 429
        assert (await colleague.log_in(key)).status_code == 303
        assert (await colleague.get("/jobs")).status_code == 200
        assert (await site.stranger().get(link)).status_code == 303
        assert (await stranger.log_in(key)).status_code == 303

    visiting(app, test)


def test_a_form_of_another_session_or_site_changes_nothing(app):
    @app.workflow
    def idle() -> int:
        return 1

    async def test(site: Site) -> None:
        job = idle.submit()
        visitor, other = await site.visitor(), await site.visitor()
        path = f"/jobs/{job.id}/cancel"
        stolen = await visitor.token()
        assert (await visitor.http.post(path, data={"grace": "0"})).status_code == 403
        assert (await other.http.post(path, data={"csrf": stolen})).status_code == 403
        good = {"csrf": stolen}
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await visitor.http.post(path, data=good, headers=headers)).status_code == 403
        wrong_host = await visitor.http.post(path, data=good, headers={"Host": "evil.example"})
        assert wrong_host.status_code == 421
        as_json = await visitor.http.post(path, json=good)
        assert as_json.status_code == 415
        assert job.state().value == "QUEUED"
        assert (await visitor.http.post(path, data=good)).status_code == 303
        assert job.state().value == "CANCELLED"

    visiting(app, test)
