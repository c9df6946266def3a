"""What follows from finished work: the next state, the facts to record, and when a limit is reached.

Pure functions of what the log says and of what a worker left behind.
"""

from __future__ import annotations

from tallystick.core.limits import clip_text
from tallystick.errors import BadInput, RunError
from tallystick.runs.definition.pipeline import ENDS
from tallystick.runs.log.events import (
    ErrorRecord,
    EventType,
    GraphRecord,
    Issue,
    IssueMove,
    ItemFailed,
    ItemReason,
    SectionMove,
    SectionState,
    Severity,
)
from tallystick.runs.log.fold import RunView
from tallystick.runs.log.recorder import Fact
from tallystick.runs.log.snapshot import WorkStatus
from tallystick.runs.workers.work import SectionWish, Work, make_issue


def word(work: Work, returned: object) -> str:
    """Return the word that chooses the next state: nothing for None, `ok` or `not_ok` for a truth value."""
    missing = work.missing_outputs()
    if missing:
        raise BadInput(f"{work.worker} returned without making {', '.join(missing)}")
    if returned is None:
        return ""
    if isinstance(returned, bool):
        return "ok" if returned else "not_ok"
    if isinstance(returned, str):
        return clip_text(returned, 128)
    raise BadInput(f"{work.worker} returned a {type(returned).__name__}; return an outcome, or nothing")


def next_state(view: RunView, graph: GraphRecord) -> str:
    """Return the state that the outcomes of this visit choose, or raise when they choose none or several."""
    exits = [edge for edge in graph.edges if edge.source == view.state and edge.target not in ENDS]
    if len(exits) == 1 and not exits[0].when:
        return exits[0].target
    visit = view.visits(view.state)
    said = {
        view.outcomes[item_id]
        for work_key, item_id in view.done.items()
        if (work_key.state, work_key.visit) == (view.state, visit) and view.outcomes[item_id]
    }
    chosen = [edge.target for edge in exits if {edge.when, edge.target} & said]
    if len(said) != 1 or len(chosen) != 1:
        legal = ", ".join(edge.when or edge.target for edge in exits)
        heard = ", ".join(sorted(said)) or "nothing"
        raise RunError(f"the work of {view.state} must return one of: {legal}; it returned {heard}")
    return chosen[0]


def limit_issue(view: RunView, graph: GraphRecord, target: str) -> Issue | None:
    """Return the issue that ends the run when a state has been entered as often as it may be."""
    limit = graph.limits.get(target)
    if limit is None or view.visits(target) < limit:
        return None
    message = f"{target} was entered {limit} times, which is its limit"
    return make_issue(view.state, Severity.BLOCKER, message, error_code=f"MAX_{target}_EXCEEDED")


def notes(view: RunView, work: Work) -> list[Fact]:
    """Return what the worker said about sections and issues, without what the log says already."""
    sections = dict(view.sections)
    issues = {issue_id: issue.status for issue_id, issue in view.issues.items()}
    facts: list[Fact] = []
    for note in work.notes:
        if isinstance(note, SectionWish):
            before = sections.get(note.section, SectionState.NOT_STARTED)
            if before is not note.to_state:
                move = SectionMove(note.section, before, note.to_state)
                facts.append((EventType.SECTION_STATE_CHANGED, move))
                sections[note.section] = note.to_state
            continue
        if isinstance(note, IssueMove) and note.issue_id not in issues:
            raise BadInput(f"{work.worker} names the issue {note.issue_id[:80]!r}, which was never opened")
        if issues.get(note.issue_id) is not note.status:
            opens = isinstance(note, Issue)
            facts.append((EventType.ISSUE_OPENED if opens else EventType.ISSUE_STATUS_CHANGED, note))
            issues[note.issue_id] = note.status
    return facts


def last_facts(view: RunView, target: str, issues: list[Issue]) -> list[Fact]:
    """Return what goes on record in front of a final state, so that no work item stays open behind it."""
    facts: list[Fact] = []
    for item in sorted(view.items.values(), key=lambda item: item.work_item_id):
        if item.status is WorkStatus.QUEUED:
            skipped = ItemReason(item.work_item_id, f"the run is {target}")
            facts.append((EventType.WORK_ITEM_SKIPPED, skipped))
        elif item.status is WorkStatus.RUNNING:
            left = ErrorRecord("Interrupted", f"the run became {target} before this work was taken up again")
            facts.append((EventType.WORK_ITEM_FAILED, ItemFailed(item.work_item_id, left)))
    facts += [(EventType.ISSUE_OPENED, issue) for issue in issues if issue.issue_id not in view.issues]
    return facts


def error_record(error: BaseException) -> ErrorRecord:
    """Return an exception as data."""
    return ErrorRecord(type(error).__name__, clip_text(str(error) or type(error).__name__))


def failure_issue(record: ErrorRecord) -> Issue:
    """Return the blocker that stands for whatever failed the run."""
    return make_issue("run", Severity.BLOCKER, f"{record.type}: {record.message}", error_code="RUN_FAILED")
