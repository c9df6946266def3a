"""Toy workers for the shipped pipeline: a small document goes from a brief to an imaginary pull request.

Everything the real thing has is here: sections drafted in parallel, a validation that fails, a fix, issues.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tallystick.core.lifecycles import RunState
from tallystick.runs.definition.pipeline import Node, Pipeline
from tallystick.runs.log.events import SectionState
from tallystick.runs.publishing import publishing
from tallystick.runs.workers.work import Work

BROKEN = "[nowhere]"


def toy_publishing(fixes_needed: int = 1, max_fix_attempts: int = 3) -> Pipeline:
    """Return the shipped pipeline with workers whose validation passes after `fixes_needed` fixes."""
    pipeline = publishing(max_fix_attempts)
    for node in NODES:
        pipeline.add(node)
    judge = partial(validate, fixes_needed=fixes_needed)
    return pipeline.add(
        Node("validator", RunState.VALIDATING, judge, ("linked.md", "patch.json?"), ("report.json",))
    )


def clone(work: Work) -> None:
    """Fetch the brief."""
    work.write("inputs/brief.txt", "intro\nusage\nlimits\n")


def ingest(work: Work) -> None:
    """Read the brief."""
    work.write_json("ingested.json", work.read_text("inputs/brief.txt").split())


def find_facts(work: Work) -> None:
    """Look up what there is to say."""
    work.write_json("facts.json", {name: f"all about {name}" for name in sections(work, "ingested.json")})


def plan(work: Work) -> None:
    """Decide about the sections."""
    names = sorted(sections(work, "facts.json"))
    for name in names:
        work.section(name, SectionState.OUTLINED)
    work.write_json("plan.json", names)


def draft(work: Work) -> None:
    """Write one section, with a link that leads nowhere."""
    work.section(work.scope, SectionState.DRAFTED)
    work.write(f"drafts/{work.scope}.md", f"# {work.scope}\n\nSee {BROKEN}.\n")


def link(work: Work) -> None:
    """Put the sections together."""
    work.write("linked.md", "\n".join(work.read_text(name) for name in work.inputs))


def validate(work: Work, *, fixes_needed: int) -> bool:
    """Say whether enough links were mended, and keep the issue about them up to date."""
    fixes = work.read_json("patch.json") if "patch.json" in work.inputs else 0
    ok = isinstance(fixes, int) and fixes >= fixes_needed
    if ok and fixes:
        work.resolve_issue("broken-link")
    elif not ok:
        work.open_issue(
            "links",
            "error",
            "a link leads nowhere",
            error_code="BROKEN_LINK",
            path="linked.md",
            line=3,
            issue_id="broken-link",
        )
    work.write_json("report.json", {"ok": ok})
    return ok


def fix(work: Work) -> None:
    """Mend one more link."""
    work.write_json("patch.json", work.attempt)


def open_pull_request(work: Work) -> None:
    """Pretend to open a pull request."""
    work.write_json("pull-request.json", {"title": "Docs", "bytes": len(work.read("linked.md"))})


def close(work: Work) -> None:
    """Call every section done."""
    for name in sections(work, "plan.json"):
        work.section(name, SectionState.DONE)


def sections(work: Work, name: str) -> Iterable[str]:
    """Return the names of the sections from a list or an object in an input."""
    value = work.read_json(name)
    return [str(one) for one in value] if isinstance(value, (list, dict)) else []


NODES = (
    Node("cloner", RunState.CREATED, clone, outputs=("inputs/brief.txt",)),
    Node("ingester", RunState.CLONED_INPUTS, ingest, ("inputs/brief.txt",), ("ingested.json",)),
    Node("fact-finder", RunState.INGESTED, find_facts, ("ingested.json",), ("facts.json",)),
    Node("planner", RunState.FACTS_READY, plan, ("facts.json",), ("plan.json",)),
    Node(
        "drafter",
        RunState.DRAFTING,
        draft,
        ("plan.json", "facts.json"),
        ("drafts/{scope}.md",),
        scopes=lambda work: sections(work, "plan.json"),
    ),
    Node("linker", RunState.LINKING, link, ("drafts/*.md",), ("linked.md",)),
    Node("fixer", RunState.FIXING, fix, ("report.json",), ("patch.json",)),
    Node(
        "opener",
        RunState.READY_FOR_PR,
        open_pull_request,
        ("linked.md", "report.json"),
        ("pull-request.json",),
    ),
    Node("closer", RunState.PR_OPENED, close, ("plan.json", "pull-request.json")),
)

pipeline = toy_publishing()
