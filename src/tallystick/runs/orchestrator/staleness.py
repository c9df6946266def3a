"""What must be made again when an artifact has changed: exactly what rests on it, directly or through others.

Pure functions of what the log says and of what the disk holds; the order of every answer is fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tallystick.errors import BadInput
from tallystick.runs.log.events import ArtifactInvalidated, ArtifactWritten, EventType, ItemReason
from tallystick.runs.log.fold import RunView, WorkKey
from tallystick.runs.log.recorder import Fact
from tallystick.runs.log.snapshot import WorkItem, WorkStatus

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


def invalidation(
    view: RunView, roots: Iterable[str], maker: WorkKey | None = None
) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that mark everything stale that rests on the roots, nearest first.

    Work that came by before a root was made the last time has read another content of that name, as in a
    loop of checks and fixes, and does not rest on it. `maker` says which work makes the roots now.

    What was invalidated before is not named again, but it is looked through: a crash may have come between
    the mark on one artifact and the mark on the next. A root that rests on another root is stale as well; its
    mark is in the second list, for it must follow whatever is recorded about the root itself.
    """
    places = _places(view)
    since = {name: _made_at(view, places, name, maker) for name in roots}
    origin, frontier, marked = set(since), set(since), set[str]()
    latest = (view.items[item_id] for item_id in view.attempts.values())
    waiting = {item.work_item_id: item for item in latest if item.status is WorkStatus.FINISHED}
    counting = set(view.done.values())
    facts: list[Fact] = []
    late: list[Fact] = []
    while frontier:
        found: dict[str, str] = {}
        hit = _resting(view, waiting.values(), places, {name: since[name] for name in frontier})
        frontier = set()
        for item, at, cause in hit:
            del waiting[item.work_item_id]
            if item.work_item_id in counting:
                reason = ItemReason(item.work_item_id, f"{cause} changed")
                facts.append((EventType.WORK_ITEM_INVALIDATED, reason))
            # A later visit may have made a name anew; that content is judged with its own maker.
            mine = [name for name in item.outputs if view.writers.get(name) == item.work_item_id]
            found = dict.fromkeys(mine, cause) | found
            earlier = [name for name in item.outputs if at < since.get(name, at + 1)]
            since.update(dict.fromkeys(earlier, at))
            frontier.update(earlier)
        for name in sorted(set(found) - marked):
            mark = (EventType.ARTIFACT_INVALIDATED, ArtifactInvalidated(name, found[name]))
            if name in origin:
                late.append(mark)
            elif not view.artifacts[name].stale:
                facts.append(mark)
        marked |= set(found)
    return facts, late


def _resting(
    view: RunView, items: Iterable[WorkItem], places: Mapping[tuple[str, int], int], since: Mapping[str, int]
) -> list[tuple[WorkItem, int, str]]:
    """Return the work that read one of these names since it has its content, its place, and which name."""
    found: list[tuple[WorkItem, int, str]] = []
    for item in items:
        at = _place(places, view.work_keys[item.work_item_id])
        causes = [name for name in item.inputs if name in since and at >= since[name]]
        if causes:
            found.append((item, at, min(causes)))
    return sorted(found, key=lambda entry: (entry[0].worker, entry[0].scope_key, entry[0].attempt))


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
        if not maker or view.done.get(view.work_keys[maker]) != maker:
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
    later = [item_id for work_key, item_id in view.done.items() if path_index(view.path, work_key) >= index]
    return _again(view, sorted(later), "forced")


def rewind_index(path: Sequence[str], work_keys: Iterable[WorkKey]) -> int:
    """Return the earliest entry of the path at which one of these pieces of work has to be done."""
    return min((path_index(path, work_key) for work_key in work_keys), default=len(path))


def path_index(path: Sequence[str], work_key: WorkKey) -> int:
    """Return where in the path a piece of work belongs, or the length of the path when it is not on it."""
    visit = 0
    for index, state in enumerate(path):
        visit += state == work_key.state
        if state == work_key.state and visit == work_key.visit:
            return index
    return len(path)


def _places(view: RunView) -> dict[tuple[str, int], int]:
    """Return where on the way of the run each visit of a state is, also where a rewind took it back."""
    places: dict[tuple[str, int], int] = {}
    visits: Counter[str] = Counter()
    for at, state in enumerate((*view.path, *view.retrace)):
        visits[state] += 1
        places[state, visits[state]] = at
    return places


def _place(places: Mapping[tuple[str, int], int], work_key: WorkKey) -> int:
    """Return where a piece of work belongs; one that no path leads to any more comes last."""
    return places.get((work_key.state, work_key.visit), len(places))


def _made_at(view: RunView, places: Mapping[tuple[str, int], int], name: str, maker: WorkKey | None) -> int:
    """Return from where on the way work has read the content that a name has now."""
    item_id = view.writers.get(name)
    work_key = maker or (view.work_keys[item_id] if item_id else None)
    return places.get((work_key.state, work_key.visit), 0) if work_key else 0


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
