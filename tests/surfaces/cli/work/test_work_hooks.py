"""`tally work` calls what the program declares around its worker, in each of its processes."""

from __future__ import annotations

import pytest

from tests.patience import wait_until
from tests.surfaces.commands import Shop, Work

AROUND = """
import os
from pathlib import Path
from tallystick import Tally

app = Tally("sqlite:///shop.db")
prices = {}

@app.on_worker_start
def load():
    prices["tea"] = 3

@app.on_worker_start
async def warm():
    prices["cake"] = prices["tea"] + 1
    Path(f"started.{os.getpid()}").touch()

@app.on_worker_stop
def unload():
    Path(f"stopped.{os.getpid()}").touch()

@app.workflow
def price(of: str) -> int:
    return prices[of]

@app.workflow
async def async_price(of: str) -> int:
    return prices[of]
"""

REFUSES = """
from tallystick import Tally

app = Tally("sqlite:///shop.db")

@app.on_worker_start
def load():
    {statement}

@app.workflow
def price() -> int:
    return 3
"""


@pytest.fixture
def shop(tmp_path) -> Shop:
    shop = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(AROUND)
    return shop


@pytest.mark.parametrize("processes", [1, 2])
def test_it_calls_the_functions_of_start_before_a_job_and_those_of_stop_at_the_end(shop, processes):
    with Work(shop, "--processes", str(processes), "--verbose") as work:
        said = work.seen[0]
        for job in (shop.submit("shop:price", '"cake"'), shop.submit("shop:async_price", '"cake"')):
            work.wait_for("done", job_id=job)
            assert shop.tally("show", job, "shop", "--json").data["result"] == 4
        # One of two may have done both jobs while the other was still importing its program.
        wait_until(lambda: len(list(shop.folder.glob("started.*"))) == processes, "all have started")
        assert work.stop() == 0
    pids = said["processes"] if processes > 1 else [work.process.pid]
    assert {path.name for path in shop.folder.glob("stopped.*")} == {f"stopped.{pid}" for pid in pids}


@pytest.mark.parametrize(
    ("statement", "says"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("raise SystemExit(3)", "SystemExit: 3")],
)
def test_a_function_of_start_that_raises_is_shown_with_its_place_and_nothing_is_claimed(
    shop, statement, says
):
    (shop.folder / "shop.py").write_text(REFUSES.format(statement=statement))
    job = shop.submit("shop:price")
    done = shop.tally("work", "shop")
    assert (done.code, done.out) == (1, "")
    *_, first, second = done.err.splitlines()
    assert first == f"error: shop.py, line 8: {says}"
    assert second.strip() == statement
    assert shop.state(job) == "QUEUED"
