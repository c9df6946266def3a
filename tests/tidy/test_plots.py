"""The plots of the performance page show figures that a run has printed, and are drawn from them."""

from __future__ import annotations

import tomllib

from scripts.plots import FIGURES, PLOTS, drawn, plots
from tests.tidy.tree import ROOT

LABEL_MAX = 36  # so many letters fit beside a bar


def test_every_plot_is_current_and_shown():
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert {path.name: path.read_text("utf-8") for path in PLOTS.glob("*.svg")} == plots(), "run `make docs`"
    assert [name for name in plots() if f"](performance/{name})" not in page] == []


def test_every_figure_is_one_that_the_benchmarks_page_has():
    printed = (ROOT / "bench" / "README.md").read_text("utf-8")
    bars = [bar for plot in tomllib.loads(FIGURES.read_text("utf-8")).values() for bar in plot["bars"]]
    assert [bar for bar in bars if bar["said"] not in printed] == []
    assert [bar for bar in bars if len(bar["label"]) > LABEL_MAX] == []
    assert [bar for bar in bars if f"{bar['value']:,}" not in bar["said"]] == []


def test_the_longest_bar_is_that_of_the_largest_figure():
    plot = {"title": "<t>", "run": "r", "bars": [{"label": "a", "value": 1}, {"label": "b", "value": 2}]}
    text = drawn(plot)
    assert 'width="165.0"' in text
    assert 'width="330.0"' in text
    assert "&lt;t&gt;" in text
