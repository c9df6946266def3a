# When an artifact changes, exactly what rests on it is made again; the rest is left alone.
from __future__ import annotations

import tempfile
from pathlib import Path

from tallystick.runs import Pipeline, Work

called: list[str] = []
pipeline = Pipeline("site", {"PAGES": "INDEX", "INDEX": "REVIEW", "REVIEW": {"ok": "DONE", "later": "INDEX"}})


@pipeline.node("PAGES", inputs=["{scope}.md"], outputs=["{scope}.html"], scopes=["home", "about"])
def page(work: Work) -> None:
    called.append(f"page {work.scope}")
    work.write(f"{work.scope}.html", f"<p>{work.read_text(f'{work.scope}.md')}</p>")


@pipeline.node("INDEX", inputs=["*.html"], outputs=["index.txt"])
def index(work: Work) -> None:
    called.append("index")
    work.write("index.txt", " ".join(work.inputs))


@pipeline.node("REVIEW", inputs=["index.txt"])
def review(work: Work) -> str:
    print("review of", work.read_text("index.txt"))
    if "edited" not in called:
        raise KeyboardInterrupt  # the process ends here the first time
    return "ok"


if __name__ == "__main__":
    root = Path(tempfile.mkdtemp())
    try:
        pipeline.run(root, "site", inputs={"home.md": b"welcome", "about.md": b"us"}, parallel=1)
    except KeyboardInterrupt:
        print("first:", ", ".join(called))
    (root / "site" / "artifacts" / "about.md").write_text("all of us")
    called[:] = ["edited"]
    pipeline.run(root, "site", parallel=1)
    print("again:", ", ".join(called[1:]))
