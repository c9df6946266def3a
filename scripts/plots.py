"""Draw the plots of docs/performance.md from the figures in bench/figures.toml: `make docs` does it.

A plot is bars with their figures beside them, as SVG that a browser shows in light and in dark. No plotting
library: five plots of bars are sixty lines.
"""

from __future__ import annotations

import sys
import tomllib
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "bench" / "figures.toml"
PLOTS = ROOT / "docs" / "performance"
WIDTH, ROW, TOP, BOTTOM = 720, 30, 44, 34
LABELS, FIGURE = 300, 90
STYLE = (
    "text { font: 14px sans-serif; fill: #1f2328 } .bar { fill: #3b6ea5 } .title { font-weight: bold } "
    ".run { font-size: 11px; fill: #59636e } rect.page { fill: #ffffff } "
    "@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #6ea8dc } "
    ".run { fill: #9198a1 } rect.page { fill: #131416 } }"
)


def plots() -> dict[str, str]:
    """Return every plot: the name of its file, and its text."""
    figures = tomllib.loads(FIGURES.read_text("utf-8"))
    return {f"{name}.svg": drawn(plot) for name, plot in figures.items()}


def drawn(plot: dict[str, Any]) -> str:
    """Return one plot as SVG."""
    bars = plot["bars"]
    height = TOP + ROW * len(bars) + BOTTOM
    unit = (WIDTH - LABELS - FIGURE) / max(bar["value"] for bar in bars)
    told = "; ".join(f"{bar['label']}: {bar['value']:,}" for bar in bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(plot['title'])}</title><desc>{escape(told)}</desc>",
        f'<style>{STYLE}</style><rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="10" y="26">{escape(plot["title"])}</text>',
    ]
    for place, bar in enumerate(bars):
        top = TOP + ROW * place
        long = bar["value"] * unit
        lines += [
            f'<text x="{LABELS - 10}" y="{top + 19}" text-anchor="end">{escape(bar["label"])}</text>',
            f'<rect class="bar" x="{LABELS}" y="{top + 4}" width="{long:.1f}" height="{ROW - 10}"/>',
            f'<text x="{LABELS + long + 8:.1f}" y="{top + 19}">{bar["value"]:,}</text>',
        ]
    lines += [f'<text class="run" x="10" y="{height - 12}">{escape(plot["run"])}</text>', "</svg>", ""]
    return "\n".join(lines)


def main() -> int:
    """Write the plots that differ, and say which."""
    PLOTS.mkdir(exist_ok=True)
    for name, text in plots().items():
        place = PLOTS / name
        if not place.exists() or place.read_text("utf-8") != text:
            place.write_text(text, "utf-8")
            print(f"wrote {place.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
