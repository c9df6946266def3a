"""Draw what a program printed as a picture: `make demo | .venv/bin/python scripts/draw_terminal.py demo.svg`.

Lines of the log are left out, some of the bars, and what stands between the work and the books.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

WIDTH, LINE, LEFT = 8.4, 18, 18
LOG = re.compile(r"^job [0-9a-f-]{36}: ")
COLOURS = (
    (re.compile(r"kill -9"), "#ff8a80"),
    (re.compile(r"^  ok "), "#8ce99a"),
    (re.compile(r"goes on at|taken back"), "#ffd479"),
    (re.compile(r"balance|^Tallystick"), "#ffffff"),
)
PLAIN = "#c9d1d9"


def shown(text: str) -> list[str]:
    """Return the first part, in which the kill is, and the books, which are counted in the end."""
    lines = [line.rstrip() for line in text.splitlines() if not LOG.match(line)]
    start = next(n for n, line in enumerate(lines) if line.startswith("Tallystick"))
    done = next(n for n, line in enumerate(lines) if line.endswith("orders are done"))
    books = next(n for n, line in enumerate(lines) if line.startswith("The books,"))
    end = next(n for n, line in enumerate(lines[books + 2 :], books + 2) if not line)
    first = lines[start : done + 1]
    bars = [n for n, line in enumerate(first) if "leases A:" in line]
    dropped = bars[2:-2:2]
    kept = [line for n, line in enumerate(first) if n not in dropped]
    last = next(line for line in reversed(lines) if line)
    return [*kept, "", "  …", "", *lines[books:end], "", last]


def drawn(lines: list[str]) -> str:
    """Return the lines as SVG, in the font of a terminal."""
    width = max(map(len, lines)) * WIDTH + 2 * LEFT
    height = len(lines) * LINE + 2 * LEFT
    texts = []
    for n, line in enumerate(lines):
        colour = next((colour for words, colour in COLOURS if words.search(line)), PLAIN)
        place = f'x="{LEFT}" y="{LEFT + (n + 0.75) * LINE:.0f}" fill="{colour}"'
        texts.append(f'<text {place} xml:space="preserve">{escape(line)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}"'
        ' role="img" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">\n'
        f'<rect width="100%" height="100%" rx="10" fill="#0d1117"/>\n' + "\n".join(texts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn(shown(sys.stdin.read())), encoding="utf-8")
