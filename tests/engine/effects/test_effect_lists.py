"""Lists of effects: whole, in order and page by page, with any filter, on both stores."""

from __future__ import annotations

from typing import get_args

import pytest

from tallystick.core.effects.rows import Came, EffectRow, Phase
from tallystick.core.watching.searching import EffectSearch
from tallystick.errors import BadInput
from tallystick.http.forms import Stands
from tallystick.store.api import searched
from tests.app.effect_kinds import live_with_effects

TENANT = "default"


@pytest.fixture
def lived(timed, hand, clock):
    live_with_effects(timed, hand, clock)
    return timed


def pages(app, search: EffectSearch, limit: int = 2, window: int = 10_000) -> list[EffectRow]:
    """Return all effects of a search, from as many pages as it takes."""
    store, found, after = searched(app.runtime().store), [], None
    while True:
        page = store.effects_found(search, after=after, limit=limit, window=window)
        assert len(page.rows) <= limit
        found += page.rows
        after = page.reached
        if after is None:
            return found


@pytest.mark.slow
def test_effects_are_listed_once_each_and_in_order(lived):
    ended = pages(lived, EffectSearch(TENANT, ended=True))
    assert len({row.exec_id for row in ended}) == len(ended) > 9
    assert ended == sorted(ended, key=lambda row: (row.ended_at, row.exec_id), reverse=True)
    kept = lived.runtime().store
    jobs = {row.job_id for row in ended}
    assert {row.exec_id for job in jobs for row in kept.effects(job) if row.ended_at} == {
        row.exec_id for row in ended
    }
    still_open = pages(lived, EffectSearch(TENANT))
    assert still_open == sorted(still_open, key=lambda row: (row.key, row.exec_id))
    assert pages(lived, EffectSearch("other", ended=True)) == pages(lived, EffectSearch("other")) == []


@pytest.mark.slow
def test_a_filter_finds_its_effects_whatever_the_window(lived):
    ended = pages(lived, EffectSearch(TENANT, ended=True), limit=100)
    one = ended[len(ended) // 2]
    for told in ({"effect": one.effect}, {"key": one.key}, {"job_id": one.job_id}, {"stands": one.outcome}):
        search = EffectSearch(TENANT, ended=True, **told)
        wanted = {row.exec_id for row in ended if search.wants(row)}
        assert one.exec_id in wanted
        for window in (3, 10_000):
            assert {row.exec_id for row in pages(lived, search, window=window)} == wanted, (told, window)
    assert pages(lived, EffectSearch(TENANT, key=one.key)) == []
    with pytest.raises(BadInput, match="use the value from the previous page"):
        searched(lived.runtime().store).effects_found(EffectSearch(TENANT, ended=True), after="soon", limit=1)


def test_a_request_may_name_every_place_where_an_effect_can_stand():
    assert {*get_args(Stands)} == {each.value for each in (*Phase, *Came)} - {Phase.ENDED}
