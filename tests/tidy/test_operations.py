"""The dashboard and the alerts name series that exist, and the guide names all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from tallystick.clock import SystemClock, VirtualClock
from tallystick.engine.observe import Observers
from tallystick.store.opening import open_store
from tallystick.watch.process_series import ProcessSeries
from tallystick.watch.store_series import StoreSeries

ROOT = Path(__file__).parents[2]
SERIES = re.compile(r"tallystick_[a-z_]+[a-z]")
PARTS_OF_HISTOGRAMS = ("_bucket", "_sum", "_count", "_created")


def plain(name: str) -> str:
    """Return a series without the ends that the format adds for parts of a histogram."""
    for end in PARTS_OF_HISTOGRAMS:
        name = name.removesuffix(end)
    return name


@pytest.fixture
def known(tmp_path) -> set[str]:
    """Return every series that a worker and its store have."""
    store = open_store(f"sqlite:///{tmp_path}/books.db", SystemClock(), create=True)
    process = ProcessSeries(Observers(VirtualClock()))
    process.registry.register(StoreSeries(store, SystemClock()))
    text = generate_latest(process.registry).decode()
    store.close()
    slots = {"tallystick_slots", "tallystick_slots_taken"}
    return slots | {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


@pytest.mark.parametrize("page", ["docs/operations/grafana.json", "docs/operations/alerts.yml"])
def test_every_series_that_an_operator_page_names_exists(known, page):
    named = {plain(name) for name in SERIES.findall((ROOT / page).read_text())}
    assert named
    assert {name for name in named if name.removesuffix("_total") not in known and name not in known} == set()


def test_the_guide_names_every_series(known):
    text = (ROOT / "docs/guides/watching.md").read_text()
    named = {plain(name).removesuffix("_total") for name in SERIES.findall(text)}
    made = {plain(name).removesuffix("_total") for name in known}
    assert made == named


def test_the_dashboard_has_a_title_and_a_query_for_every_panel():
    panels = json.loads((ROOT / "docs/operations/grafana.json").read_text())["panels"]
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])
