"""`--tenant`: operators see all tenants, and what they say to many reaches one unless they say more."""

from __future__ import annotations

from contextlib import closing

import pytest

from tallystick import Fatal, Tally
from tallystick.errors import JobFailed
from tests.surfaces.commands import PATIENCE, Shop


class Tenants:
    """A store in which two tenants have a job that failed and one that waits."""

    def __init__(self, folder) -> None:
        self.shop = Shop(folder)
        with closing(Tally(f"sqlite:///{self.shop.database}")) as app:

            @app.workflow
            def checkout(n: int) -> int:
                return n

            @app.workflow
            def fails() -> None:
                raise Fatal("no")

            names = ("default", "acme")
            failed = {name: fails.opts(tenant=name).submit() for name in names}
            with app.worker():
                for job in failed.values():
                    with pytest.raises(JobFailed):
                        job.result(timeout=PATIENCE)
            self.failed = {name: job.id for name, job in failed.items()}
            self.waits = {name: checkout.opts(tenant=name, tags=["vip"]).submit(1).id for name in names}

    def listed(self, *words: str) -> list[str]:
        return [job["job_id"] for job in self.shop.tally(*words, "--json").data["jobs"]]


@pytest.fixture
def tenants(tmp_path) -> Tenants:
    return Tenants(tmp_path)


def test_lists_show_all_tenants_or_the_one_that_is_named(tenants: Tenants):
    waits, failed = tenants.waits, tenants.failed
    everything = [waits["acme"], waits["default"], failed["acme"], failed["default"]]
    for words in (("list", "shop"), ("list", "shop", "--since", "1h"), ("list", "shop", "--tenant", "*")):
        assert tenants.listed(*words) == everything
    assert tenants.listed("list", "shop", "--tenant", "acme") == [waits["acme"], failed["acme"]]
    assert tenants.listed("list", "shop", "--tag", "vip", "--tenant", "acme") == [waits["acme"]]
    assert tenants.listed("list", "shop", "--roots", "--tenant", "acme") == [waits["acme"], failed["acme"]]
    assert tenants.listed("dead", "shop") == [failed["acme"], failed["default"]]
    assert tenants.listed("dead", "shop", "--tenant", "acme") == [failed["acme"]]
    told = tenants.shop.tally("list", "shop", "--tenant", "acme", "--json").data["jobs"]
    assert {job["tenant_id"] for job in told} == {"acme"}
    assert tenants.shop.tally("list", "shop", "--tenant", "a b").code == 4


@pytest.mark.parametrize("verb", ["list", "dead"])
def test_a_table_has_a_column_of_tenants_where_there_are_several(tenants: Tenants, verb: str):
    lines = tenants.shop.tally(verb, "shop").out.splitlines()
    assert all({"acme", "default"} & set(line.split()[:3]) for line in lines)
    alone = tenants.shop.tally(verb, "shop", "--tenant", "acme").out
    assert "acme" not in alone


def test_a_word_to_many_reaches_the_default_tenant_another_or_all(tenants: Tenants):
    waits = tenants.waits
    which = ("shop", "--where", "workflow=checkout", "--where", "state=QUEUED", "--yes", "--json")
    assert tenants.shop.tally("pause", *which).data == {"matched": 1, "done": 1, "passed_by": 0}
    assert tenants.shop.tally("pause", *which, "--tenant", "acme").data == {
        "matched": 1,
        "done": 1,
        "passed_by": 0,
    }
    assert tenants.shop.tally("resume", *which, "--tenant", "*").data == {
        "matched": 2,
        "done": 2,
        "passed_by": 0,
    }
    tagged = ("shop", "--tag", "vip", "--older", "0s", "--yes", "--json", "--tenant", "*")
    assert tenants.shop.tally("cancel", *tagged).data == {"matched": 2, "done": 2, "passed_by": 0}
    assert {tenants.shop.state(job) for job in waits.values()} == {"CANCELLED"}
    dead = ("shop", "--where", "workflow=fails", "--yes", "--json", "--tenant", "*")
    assert tenants.shop.tally("retry", *dead).data == {"matched": 2, "done": 2, "passed_by": 0}


def test_a_tenant_beside_one_job_is_a_mistake(tenants: Tenants):
    said = tenants.shop.tally("cancel", tenants.waits["acme"], "shop", "--tenant", "acme")
    assert said.code == 2
    assert "--tenant goes with --where" in said.err
