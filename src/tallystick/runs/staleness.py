"""What must be made again when an artifact has changed: exactly what rests on it, directly or through others.

Pure functions of what the log says and of what the disk holds; the order of every answer is fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tallystick.errors import BadInput
from tallystick.runs.events import ArtifactInvalidated, ArtifactWritten, EventType, ItemReason
from tallystick.runs.fold import Duty, RunView
from tallystick.runs.journal import Fact
from tallystick.runs.snapshot import WorkStatus

EXTERNAL = "external"


def changed_artifacts(view: RunView, digests: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the artifacts whose content is not the recorded one, with the new hash, and the missing ones."""
    changed: dict[str, str] = {}
    missing: list[str] = []
    for name, artifact in sorted(view.artifacts.items()):
        digest = digests.get(name, "")
        if not digest:
            missing.append(name)
        elif digest != artifact.sha256:
            changed[name] = digest
    return changed, missing


def invalidation(view: RunView, roots: Iterable[str]) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that mark everything stale that rests on the roots, nearest first.

    What was invalidated before is not named again, but it is looked through: a crash may have come between
    the mark on one artifact and the mark on the next. A root that rests on another root is stale as well; its
    mark is in the second list, for it must follow whatever is recorded about the root itself.
    """
    origin = set(roots)
    frontier, marked = set(origin), set[str]()
    latest = (view.items[item_id] for item_id in view.attempts.values())
    waiting = {item.work_item_id: item for item in latest if item.status is WorkStatus.FINISHED}
    counting = set(view.done.values())
    facts: list[Fact] = []
    late: list[Fact] = []
    while frontier:
        hit = [item for item in waiting.values() if frontier & set(item.inputs)]
        hit.sort(key=lambda item: (item.worker, item.scope_key, item.attempt))
        found: dict[str, str] = {}
        for item in hit:
            del waiting[item.work_item_id]
            cause = min(frontier & set(item.inputs))
            if item.work_item_id in counting:
                reason = ItemReason(item.work_item_id, f"{cause} changed")
                facts.append((EventType.WORK_ITEM_INVALIDATED, reason))
            for name in sorted(item.outputs):
                found.setdefault(name, cause)
        for name in sorted(set(found) - marked):
            mark = (EventType.ARTIFACT_INVALIDATED, ArtifactInvalidated(name, found[name]))
            if name in origin:
                late.append(mark)
            elif not view.artifacts[name].stale:
                facts.append(mark)
        frontier = set(found) - marked - origin
        marked |= set(found)
    return facts, late


def acceptance(view: RunView, changed: Mapping[str, str]) -> list[Fact]:
    """Return the facts that take the new content of changed artifacts as given.

    They must follow the invalidation in the log: while they are missing, a resume sees the change again.
    """
    return [
        (
            EventType.ARTIFACT_WRITTEN,
            ArtifactWritten(
                name, view.artifacts[name].path, digest, view.artifacts[name].schema_id, EXTERNAL
            ),
        )
        for name, digest in sorted(changed.items())
    ]


def regeneration(view: RunView, missing: Iterable[str]) -> list[Fact]:
    """Return the facts by which the makers of missing artifacts work again.

    What rests on them is invalidated later, and only if they come out different.
    """
    makers: dict[str, str] = {}
    facts: list[Fact] = []
    for name in missing:
        maker = view.writers.get(name, "")
        if not maker or view.done.get(view.duties[maker]) != maker:
            continue
        makers.setdefault(maker, name)
        if not view.artifacts[name].stale:
            facts.append((EventType.ARTIFACT_INVALIDATED, ArtifactInvalidated(name, name)))
    again: list[Fact] = [
        (EventType.WORK_ITEM_INVALIDATED, ItemReason(maker, f"{name} is missing"))
        for maker, name in sorted(makers.items())
    ]
    return again + facts


def forced(view: RunView, wanted: Iterable[str]) -> list[Fact]:
    """Return the facts by which finished work is done again because the user says so.

    Wanted is a work item id, a worker, or `worker:scope`. What rests on the work follows only if its output
    differs.
    """
    facts: list[Fact] = []
    finished = sorted(view.done.values())
    for name in dict.fromkeys(wanted):
        hit = [item_id for item_id in finished if name in _names(view, item_id)]
        if not hit:
            raise BadInput(
                f"no finished work item is called {name[:300]!r}; see `tally run show`", item=name[:300]
            )
        facts += _again(view, hit, "forced")
    return list(dict.fromkeys(facts))


def redone_from(view: RunView, index: int) -> list[Fact]:
    """Return the facts by which everything is done again from an entry of the path on."""
    later = [item_id for duty, item_id in view.done.items() if path_index(view.path, duty) >= index]
    return _again(view, sorted(later), "forced")


def rewind_index(path: Sequence[str], duties: Iterable[Duty]) -> int:
    """Return the earliest entry of the path at which one of these duties has to be done."""
    return min((path_index(path, duty) for duty in duties), default=len(path))


def path_index(path: Sequence[str], duty: Duty) -> int:
    """Return where in the path a duty belongs, or the length of the path when it is not on it."""
    visit = 0
    for index, state in enumerate(path):
        visit += state == duty.state
        if state == duty.state and visit == duty.visit:
            return index
    return len(path)


def _names(view: RunView, item_id: str) -> tuple[str, ...]:
    item = view.items[item_id]
    return item_id, item.worker, f"{item.worker}:{item.scope_key}"


def _again(view: RunView, item_ids: Iterable[str], reason: str) -> list[Fact]:
    facts: list[Fact] = []
    for item_id in item_ids:
        facts.append((EventType.WORK_ITEM_INVALIDATED, ItemReason(item_id, reason)))
        facts += [
            (EventType.ARTIFACT_INVALIDATED, ArtifactInvalidated(name, name))
            for name in sorted(view.items[item_id].outputs)
            if not view.artifacts[name].stale
        ]
    return facts
