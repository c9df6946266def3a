"""`tally workers`, `health` and `metrics`: who works, whether somebody does, and how the store stands."""

from __future__ import annotations

import os
import signal
import socket
import urllib.error
import urllib.request

import apsw
import pytest

from tallystick.core.watching.rows import SILENT_MS
from tests.patience import wait_until
from tests.surfaces.commands import PATIENCE, Shop, Work


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


def test_a_worker_is_shown_while_it_lives_and_gone_when_it_has_stopped(shop):
    with Work(shop, "--concurrency", "3") as work:
        wait_until(lambda: shop.tally("workers", "shop", "--json").data, "the worker has reported")
        (worker,) = shop.tally("workers", "shop", "--json").data
        assert (worker["pid"], worker["host"]) == (work.process.pid, socket.gethostname())
        assert (worker["slots"], worker["running"], worker["live"]) == (3, 0, True)
        assert worker["queues"] == ["default", "mail"]
        assert shop.tally("health", "shop").code == 0
        assert shop.tally("health", "shop", "--pid", str(work.process.pid)).out == "1 live worker\n"
        assert shop.tally("health", "shop", "--pid", str(os.getpid())).code == 1
        assert "0 of 3 running" in shop.tally("workers", "shop").out
        assert work.stop() == 0
    assert shop.tally("workers", "shop").out == "no workers\n"
    unwell = shop.tally("health", "shop")
    assert (unwell.code, unwell.out) == (1, "no live worker\n")


def test_a_worker_that_was_killed_is_shown_as_one_that_is_not_heard_of(shop):
    with Work(shop) as work:
        wait_until(lambda: shop.tally("workers", "shop", "--json").data, "the worker has reported")
        work.process.send_signal(signal.SIGKILL)
        work.process.wait(PATIENCE)
    apsw.Connection(str(shop.database)).execute("update workers set heard_at = heard_at - ?", [SILENT_MS])
    assert "last heard of" in shop.tally("workers", "shop").out
    assert shop.tally("health", "shop").code == 1


def test_a_queue_that_is_known_has_its_depth_while_it_is_empty(shop):
    shop.submit("shop:letter", '"Ada"', "--delay", "1h")
    shop.tally("queues", "set", "emails", "concurrency=5", "shop")
    with Work(shop):
        wait_until(lambda: shop.tally("workers", "shop", "--json").data, "the worker has reported")
        said = shop.tally("metrics", "shop").out.splitlines()
    for queue in ("emails", "default"):
        assert f'tallystick_queue_depth{{queue="{queue}"}} 0.0' in said
        assert f'tallystick_queue_oldest_seconds{{queue="{queue}"}} 0.0' in said


def test_the_store_says_how_deep_its_queues_are(shop):
    for _ in range(3):
        shop.submit("shop:checkout", "1")
    shop.submit("shop:letter", '"Ada"')
    said = shop.tally("metrics", "shop").out.splitlines()
    assert 'tallystick_queue_depth{queue="default"} 3.0' in said
    assert 'tallystick_queue_depth{queue="mail"} 1.0' in said
    assert "tallystick_workers 0.0" in said
    assert 'tallystick_jobs_held{hold="IN_DOUBT"} 0.0' in said


def test_a_worker_serves_the_series_of_its_process_and_of_its_store(shop):
    with Work(shop, "--metrics", "127.0.0.1:0") as work:
        port = work.wait_for("metrics")["port"]
        good, bad = shop.submit("shop:checkout", "13"), shop.submit("shop:fails", '"no"')
        wait_until(
            lambda: {shop.state(good), shop.state(bad)} == {"SUCCEEDED", "FAILED_FINAL"}, "both jobs end"
        )
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            said = answer.read().decode().splitlines()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
        assert work.stop() == 0
    assert 'tallystick_jobs_ended_total{state="SUCCEEDED",workflow="checkout"} 1.0' in said
    assert 'tallystick_jobs_ended_total{state="FAILED_FINAL",workflow="fails"} 1.0' in said
    assert 'tallystick_tries_failed_total{workflow="checkout"} 1.0' in said
    assert "tallystick_slots 16.0" in said
    assert any(line.startswith("tallystick_flush_seconds_count") for line in said)
    assert any(line.startswith("tallystick_schedule_lag_seconds") for line in said)


def test_an_address_that_is_none_is_told(shop):
    said = shop.tally("work", "shop", "--metrics", "here")
    assert (said.code, said.err) == (4, "error: 'here' is no HOST:PORT; write 127.0.0.1:8000\n")
