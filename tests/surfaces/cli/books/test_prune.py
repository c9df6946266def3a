"""`tally prune`: what ended long enough ago goes, and the command says how many jobs that were."""

from __future__ import annotations

import pytest

from tests.surfaces.commands import Shop


@pytest.fixture
def shop(tmp_path) -> Shop:
    return Shop(tmp_path)


def test_finished_jobs_go_when_they_are_old_enough(shop):
    job = shop.submit("shop:letter", '"Ada"')
    kept = shop.submit("shop:letter", '"Bob"')
    assert shop.tally("cancel", job, "shop").code == 0
    young = shop.tally("prune", "shop", "--older-than", "1h")
    assert (young.code, young.out, young.err) == (0, "0 jobs removed\n", "")
    gone = shop.tally("prune", "shop", "--older-than", "0s", "--json")
    assert gone.data == {"pruned": 1}
    assert shop.tally("show", job, "shop").code != 0
    assert shop.state(kept) == "QUEUED"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("shop",), "--older-than"),
        (("shop", "--older-than", "soon"), "soon"),
        (("shop", "--older-than", "1d", "--limit", "0"), "--limit"),
        (("--url", "sqlite:///nowhere.db", "--older-than", "1d"), "nowhere.db"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_creates_nothing(shop, arguments, said):
    refused = shop.tally("prune", *arguments)
    assert refused.code not in {0, 1}
    assert said in refused.err
    assert not list(shop.folder.glob("nowhere*"))
