"""Lists by who started a job and when, and ids by their beginnings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.surfaces.commands import Shop

FAMILY = """
from tallystick import Tally, gather

app = Tally("sqlite:///shop.db")

@app.workflow
def child(n: int) -> int:
    return n

@app.workflow
def family() -> int:
    return sum(gather(child.child(1), child.child(2)))
"""


@pytest.fixture
def shop(tmp_path) -> Shop:
    made = Shop(tmp_path)
    (tmp_path / "shop.py").write_text(FAMILY)
    return made


def listed(shop: Shop, *options: str) -> set[str]:
    return {job["job_id"] for job in shop.tally("list", "shop", "--json", *options).data["jobs"]}


def test_jobs_are_listed_by_who_started_them_and_when(shop: Shop, tmp_path):
    space: dict[str, Any] = {}
    exec(FAMILY.replace("sqlite:///shop.db", f"sqlite:///{tmp_path}/shop.db"), space)
    with space["app"].worker():
        assert space["family"].submit().result(timeout=30) == 3
    space["app"].close()
    jobs = shop.tally("list", "shop", "--json").data["jobs"]
    roots = {job["job_id"] for job in jobs if job["workflow"] == "family"}
    assert listed(shop, "--roots") == roots
    (root,) = roots
    children = {job["job_id"] for job in jobs} - roots
    assert len(children) == 2
    assert listed(shop, "--parent", root) == listed(shop, "--parent", root[:10]) == children
    assert listed(shop, "--since", "1h") == roots | children
    assert listed(shop, "--until", "1h") == set()
    assert listed(shop, "--since", "2001-01-01T00:00Z", "--until", "2100-01-01T00:00Z") == roots | children
    refused = shop.tally("list", "shop", "--roots", "--tag", "x")
    assert refused.code == 2


def test_a_job_is_named_by_a_beginning_that_only_it_has(shop: Shop):
    first = shop.tally("submit", "shop:child", "n=1").out.split()[0]
    assert shop.tally("show", first[:12], "shop").out.startswith(f"job {first}")
    assert shop.tally("why", first[:12], "shop").code == 0
    assert shop.tally("history", first[:12], "shop").code == 0
    assert shop.tally("pause", first[:12], "shop").code == 0
    assert shop.tally("resume", first[:12], "shop").code == 0
    assert shop.tally("cancel", first[:12], "shop").code == 0
    second = shop.tally("submit", "shop:child", "n=2").out.split()[0]
    shared = next(n for n in range(36) if first[n] != second[n])
    refused = shop.tally("show", first[:shared], "shop")
    assert refused.code == 4
    assert first in refused.err
    assert second in refused.err
