"""Toy workers for the shipped pipeline: a small document goes from a brief to an imaginary pull request.

Everything the real thing has is here: sections drafted in parallel, a validation that fails, a fix, issues.
"""

from __future__ import annotations

from collections.abc import Iterable

from tallystick.core.lifecycles import RunState
from tallystick.runs.events import SectionState
from tallystick.runs.pipeline import Pipeline
from tallystick.runs.publishing import publishing
from tallystick.runs.work import Work

BROKEN = "[nowhere]"


def toy_publishing(fixes_needed: int = 1, max_fix_attempts: int = 3) -> Pipeline:
    """Return the shipped pipeline with workers whose validation passes after `fixes_needed` fixes."""
    pipeline = publishing(max_fix_attempts)
    node = pipeline.node

    @node(RunState.CREATED, outputs=["inputs/brief.txt"])
    def cloner(work: Work) -> None:
        work.write("inputs/brief.txt", "intro\nusage\nlimits\n")

    @node(RunState.CLONED_INPUTS, inputs=["inputs/brief.txt"], outputs=["ingested.json"])
    def ingester(work: Work) -> None:
        work.write_json("ingested.json", work.read_text("inputs/brief.txt").split())

    @node(RunState.INGESTED, inputs=["ingested.json"], outputs=["facts.json"])
    def fact_finder(work: Work) -> None:
        work.write_json("facts.json", {name: f"all about {name}" for name in sections(work, "ingested.json")})

    @node(RunState.FACTS_READY, inputs=["facts.json"], outputs=["plan.json"])
    def planner(work: Work) -> None:
        plan = sorted(sections(work, "facts.json"))
        for name in plan:
            work.section(name, SectionState.OUTLINED)
        work.write_json("plan.json", plan)

    @node(
        RunState.DRAFTING,
        inputs=["plan.json", "facts.json"],
        outputs=["drafts/{scope}.md"],
        scopes=lambda work: sections(work, "plan.json"),
    )
    def drafter(work: Work) -> None:
        work.section(work.scope, SectionState.DRAFTED)
        work.write(f"drafts/{work.scope}.md", f"# {work.scope}\n\nSee {BROKEN}.\n")

    @node(RunState.LINKING, inputs=["drafts/*.md"], outputs=["linked.md"])
    def linker(work: Work) -> None:
        work.write("linked.md", "\n".join(work.read_text(name) for name in work.inputs))

    @node(RunState.VALIDATING, inputs=["linked.md", "patch.json?"], outputs=["report.json"])
    def validator(work: Work) -> bool:
        fixes = work.read_json("patch.json") if "patch.json" in work.inputs else 0
        ok = fixes == fixes_needed or BROKEN not in work.read_text("linked.md")
        where = {"path": "linked.md", "line": 3, "issue_id": "broken-link"}
        if ok and fixes:
            work.resolve_issue("broken-link")
        elif not ok:
            work.open_issue("links", "error", "a link leads nowhere", error_code="BROKEN_LINK", **where)  # type: ignore[arg-type]  # one mapping of mixed values
        work.write_json("report.json", {"ok": ok})
        return ok

    @node(RunState.FIXING, inputs=["report.json"], outputs=["patch.json"])
    def fixer(work: Work) -> None:
        work.write_json("patch.json", work.attempt)

    @node(RunState.READY_FOR_PR, inputs=["linked.md", "report.json"], outputs=["pull-request.json"])
    def opener(work: Work) -> None:
        work.write_json("pull-request.json", {"title": "Docs", "bytes": len(work.read("linked.md"))})

    @node(RunState.PR_OPENED, inputs=["plan.json", "pull-request.json"])
    def closer(work: Work) -> None:
        for name in sections(work, "plan.json"):
            work.section(name, SectionState.DONE)

    return pipeline


def sections(work: Work, name: str) -> Iterable[str]:
    """Return the names of the sections from a list or an object in an input."""
    value = work.read_json(name)
    return [str(one) for one in value] if isinstance(value, (list, dict)) else []


pipeline = toy_publishing()
