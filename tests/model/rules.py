"""The modules that decide, and the functions of ledgers as plain functions of small integers, remembered.

The models call core's own code and nothing else decides. What is added here is a memory: the functions are
pure, a search asks the same few thousand questions a million times. `Rules` can also be made from a changed
source of a module, which is how a guard is taken away.
"""

from __future__ import annotations

import ast
import importlib
import sys
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace

from tallystick.store.api import Fence
from tests.model.books import newborn

MODULES = {
    name.rpartition(".")[2]: f"tallystick.{name}"
    for name in (
        # First, so that it is made again only when it is changed itself: the engine's requests are of it.
        "core.verbs.control_requests",
        "core.digits",
        "core.ledger.decisions",
        "core.audit.job_view",
        "core.verbs.holds",
        "core.verbs.forking",
        "core.verbs.hooks",
        "core.verbs.trimming",
        "core.ledger.marks",
        "core.pictures",
        "core.plans",
        "core.verbs.settling",
        "core.verbs.protocol.remote",
        "core.verbs.waiting",
        "core.verbs.children",
        "core.verbs.asking",
        "core.verbs.effects.outcomes",
        "core.verbs.effects.doubting",
        "core.verbs.effects.answering",
        "core.verbs.effects.calling",
        "core.verbs.endings",
        "core.verbs.records",
        "core.verbs.control",
        "core.verbs.reclaiming",
        "core.verbs.claiming",
        "core.verbs.wants",
        "core.deciding",
    )
}
"""What is made again when one of them is changed, each behind those that it imports."""
ROW_END = 1


@cache
def source(name: str) -> str:
    return _text(MODULES[name])


def _text(path: str) -> str:
    return Path(str(importlib.import_module(path).__file__)).read_text("utf-8")


@cache
def _compiled(path: str) -> CodeType:
    return compile(_text(path), path, "exec")


def load(changed: dict[str, ast.Module] | None = None, *also: str) -> SimpleNamespace:
    """Return the modules that decide, those in `changed` and what may import them made from another tree.

    `also` names modules that are made from them as well, each behind those that it imports.
    """
    if not changed:
        return SimpleNamespace(**{name: importlib.import_module(path) for name, path in MODULES.items()})
    paths = MODULES | {path.rpartition(".")[2]: path for path in also}
    kept = {name: importlib.import_module(path) for name, path in paths.items()}
    first = min(list(paths).index(name) for name in changed)
    made = dict(list(kept.items())[:first])
    try:
        for name, path in list(paths.items())[first:]:
            module = ModuleType(path)
            module.__file__ = kept[name].__file__
            _put(path, module)
            code = compile(changed[name], path, "exec") if name in changed else _compiled(path)
            exec(code, module.__dict__)
            made[name] = module
    finally:
        for name, module in kept.items():
            _put(paths[name], module)
    return SimpleNamespace(**made)


def _put(path: str, module: ModuleType) -> None:
    """Let a module be found by both forms of an import: by its path, and as a name of its package."""
    package, _dot, name = path.rpartition(".")
    sys.modules[path] = module
    setattr(sys.modules[package], name, module)


class Rules:
    """Every decision that a model may take, by one set of core modules."""

    def __init__(self, core: SimpleNamespace | None = None) -> None:
        self.core = core or load()
        self._of_ledgers()
        self._of_attempts()
        self.view = cache(self._view)

    def _of_ledgers(self) -> None:
        """What the digits of an activity and of a message say, and what may be added to them."""
        decide = self.core.decisions
        activity, guid = self.core.digits.ActivityLedger, self.core.digits.GuidLedger
        self.complete = int(activity(0).enter_leg1().complete_leg1())

        def leg1(a: int) -> tuple[str, int]:
            verdict, after = decide.enter_leg1(activity(a))
            return verdict.name, int(after)

        def leg2(a: int, g: int) -> tuple[str, int, int]:
            """Enter leg 2; a message that was never seen has the ledger 0."""
            verdict, after, ledger = decide.enter_leg2(activity(a), guid(g) if g else None)
            return verdict.name, int(after), int(ledger or 0)

        def mark_activity(a: int, field: str) -> int:
            return int(getattr(activity(a), f"mark_{field}")())

        self.leg1 = cache(leg1)
        self.leg2 = cache(leg2)
        self.complete_leg1 = cache(lambda a: int(activity(a).complete_leg1()))
        self.mark_activity = cache(mark_activity)
        self.mark_work = cache(lambda g: int(guid(g).mark_work()))
        self.mark_children = cache(lambda g, closed: int(guid(g).mark_children(closed=closed)))
        self.mark_tasks = cache(lambda g: int(guid(g).mark_tasks()))

        def count(before: int, delta: int, threshold: int) -> tuple[int, bool]:
            move = decide.count_down(before, delta, threshold)
            return move.after, move.hit

        self.count = cache(count)
        self.step = cache(lambda g: decide.next_step(guid(g)).name)
        self.work_done = cache(lambda g: guid(g).work_done)
        self.children_spawned = cache(lambda g: guid(g).children_spawned)
        self.closed_job = cache(lambda g: guid(g).closed_job)
        self.tasks_done = cache(lambda g: guid(g).tasks_done)

    def _of_attempts(self) -> None:
        """Who holds a message, and what becomes of forks."""
        pictures = self.core.pictures
        job = newborn(self.core, "", None)

        def held(
            row: tuple[int, str] | None,
            attempt: int,
            lease_id: str,
            state: str,
            expired: bool,
            ended: bool = False,
        ) -> bool:
            lease = None if row is None else pictures.Lease(*row, state, not expired, "")
            of = job._replace(completed_at=1) if ended else job
            return bool(pictures.Picture(of, lease).holds(Fence("", attempt, lease_id)))

        self.held = cache(held)
        forking = self.core.forking
        self.fork = cache(
            lambda retry, failed, retried, moved, reserved, asked: (
                forking.decide_fork(
                    retry=retry, failed=failed, retried=retried, moved=moved, reserved=reserved, asked=asked
                ).name
            )
        )
        self.kept = cache(forking.kept_before)

    def _view(
        self, done: int, ended: str, charged: int, live: int, waits: int, budget: int, progressed: bool
    ) -> str:
        """Derive what users see from a summary of the attempts; `live` is 0 none, 1 live, 2 run out."""
        views = self.core.job_view
        states, reasons = views.AttemptState, views.AbortReason
        lost = views.AttemptFacts(states.ABORTED, 0, charged=True, reason=reasons.EXPIRED)
        kept = views.AttemptFacts(states.ABORTED, 0, progressed=True, reason=reasons.SUSPENDED)
        erred = views.AttemptFacts(states.ABORTED, 0, charged=True, reason=reasons.ERROR)
        # What was lost before the last progress is forgiven, so it may as well have happened. So may errors
        # while nothing is lost: of those the workflow's own policy decides.
        facts = [*([lost] * (budget - 1) + [kept] if progressed else []), *[lost] * charged]
        facts += [] if charged else [erred] * budget
        if done:
            # 1 is DONE; 2 is COMMITTED, whose lease may have run out.
            facts.append(views.AttemptFacts(states.DONE if done == 1 else states.COMMITTED, ROW_END))
        if ended:
            facts.append(views.AttemptFacts(states.ABORTED, ROW_END, reason=reasons(ended)))
        if live and done != 2:
            facts.append(views.AttemptFacts(states.IN_PROGRESS, ROW_END))
        now = ROW_END if live == 2 else 0
        return str(views.job_view(facts, waits, now, views.ViewPolicy(budget)).value)
