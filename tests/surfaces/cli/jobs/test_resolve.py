"""`tally resolve`: what a person has found out about an effect in doubt lets its job go on."""

from __future__ import annotations

import pytest

from tests.patience import wait_until
from tests.surfaces.commands import Shop, Work

BANK = """
from pathlib import Path
from tallystick import Key, Retry, Tally

app = Tally("sqlite:///shop.db")

@app.effect(key="charge:{order}", timeout="5s", retry=Retry(3, first="10ms"))
def charge(key: Key, order: int) -> str:
    with Path("charged").open("a") as ledger:
        ledger.write(f"{key} ")
    if Path("charged").read_text().count(key) == 1:
        raise OSError("connection reset")
    return f"receipt for {key}"

@app.workflow
def checkout(order: int) -> str:
    return charge(order)
"""


@pytest.fixture
def shop(tmp_path) -> Shop:
    made = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(BANK)
    return made


def held(shop: Shop, job_id: str) -> bool:
    return shop.tally("show", job_id, "shop", "--json").data["hold"] == "IN_DOUBT"


@pytest.mark.parametrize(
    ("said", "result", "calls"),
    [(("--happened", '"receipt 81"'), "receipt 81", 1), (("--did-not-happen",), "receipt for charge:7", 2)],
)
def test_the_answer_of_a_person_lets_the_job_go_on(shop, said, result, calls):
    job_id = shop.submit("shop:checkout", "7")
    with Work(shop) as work:
        wait_until(lambda: held(shop, job_id), "the job is held in doubt")
        answered = shop.tally("resolve", job_id, "shop", *said, "--json")
        assert answered.code == 0, answered.err
        wait_until(lambda: shop.state(job_id) == "SUCCEEDED", "the job goes on")
        assert work.stop() == 0
    assert shop.tally("show", job_id, "shop", "--json").data["result"] == result
    assert (shop.folder / "charged").read_text().split() == ["charge:7"] * calls
    assert shop.tally("verify", "shop").code == 0


def test_what_is_not_in_doubt_is_not_resolved(shop):
    job_id = shop.submit("shop:checkout", "7")
    said = shop.tally("resolve", job_id, "shop", "--did-not-happen")
    assert said.code != 0
    assert said.err.startswith("error: ")
    assert shop.state(job_id) == "QUEUED"


def test_an_effect_of_a_job_that_was_ended_by_force_is_closed_by_its_key(shop):
    job_id = shop.submit("shop:checkout", "7")
    with Work(shop) as work:
        wait_until(lambda: held(shop, job_id), "the job is held in doubt")
        assert shop.tally("cancel", job_id, "shop", "--json").data["state"] == "CANCELLING"
        assert shop.tally("cancel", job_id, "shop", "--force", "--json").data["state"] == "CANCELLED"
        assert work.stop() == 0
    unknown = shop.tally("resolve", "shop", "--key", "charge:8", "--did-not-happen")
    assert (unknown.code, "no effect in doubt has it" in unknown.err) == (4, True)
    answered = shop.tally("resolve", "shop", "--key", "charge:7", "--did-not-happen", "--by", "ann", "--json")
    assert (answered.code, answered.data) == (0, {"job_id": None, "resolved": "DONE"})
    assert shop.tally("resolve", "--did-not-happen").code == 2
    assert shop.tally("verify", "shop").code == 0


def test_a_fork_with_fresh_keys_is_asked_for_by_name(shop):
    job_id = shop.submit("shop:checkout", "7")
    with Work(shop) as work:
        wait_until(lambda: held(shop, job_id), "the job is held in doubt")
        shop.tally("resolve", job_id, "shop", "--happened", '"receipt 81"')
        wait_until(lambda: shop.state(job_id) == "SUCCEEDED", "the job goes on")
        fork = shop.tally("fork", job_id, "--at", "charge", "shop", "--fresh-keys", "--json").data["job_id"]
        wait_until(lambda: held(shop, fork), "the fork calls under a key of its own")
        assert work.stop() == 0
    assert f"charge:7:{fork}" in (shop.folder / "charged").read_text()
