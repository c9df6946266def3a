"""The modules that decide about protocol jobs, as they are or with one of them changed, and their mutants."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec

from tests.model.mutants import Mutant, changes_in, functions_of

MODULES = {
    "rows": "tallystick.core.remote.rows",
    "requests": "tallystick.core.remote.requests",
    "plans": "tallystick.core.remote.plans",
    "policy": "tallystick.core.remote.policy",
    "routing": "tallystick.core.remote.routing",
    "directives": "tallystick.core.verbs.protocol.directives",
    "drafts": "tallystick.core.verbs.protocol.drafts",
    "step_drafts": "tallystick.core.verbs.protocol.step_drafts",
    "publishing": "tallystick.core.verbs.protocol.publishing",
    "callbacks": "tallystick.core.verbs.protocol.callbacks",
    "sweeping": "tallystick.core.verbs.protocol.sweeping",
    "submitting": "tallystick.core.verbs.protocol.submitting",
    "forking": "tallystick.core.verbs.protocol.forking",
    "deciding": "tallystick.core.verbs.protocol.deciding",
}
"""Each behind those that it imports."""

GUARDED = {
    "rows": ("is_open", "is_due", "is_pulled", "is_held", "active", "step"),
    "policy": ("next_try_ms", "budget_ms"),
    **dict.fromkeys(("directives", "drafts", "step_drafts", "publishing", "callbacks"), ()),
    **dict.fromkeys(("sweeping", "submitting", "forking"), ()),
}
"""Every guard of each of these functions is taken away, or of all functions of a module."""

NOT_SEEN = {
    "drafts.end: never `trigger == 'fail'`": "cancel and drop lead to the same state; their needs differ",
}
"""Guards without which every answer is the same and every promise holds, and why they are there."""

KNOWN: tuple[tuple[str, str, str, str], ...] = (
    (
        "rule 1: the remaining steps of a job that fails stay open",
        "drafts",
        "                self.move_step(each, dropped)\n",
        "                self.move_step(each, *(() if trigger == 'fail' else (dropped,)))\n",
    ),
    (
        "rule 2: an early ACK leaves the directive in the outbox",
        "callbacks",
        '    draft = drafted(picture, now)\n    draft.close_directive("publish")\n    lease_ms',
        "    draft = drafted(picture, now)\n    lease_ms",
    ),
    (
        "rule 2: an early RESULT leaves the directive in the outbox",
        "callbacks",
        '    draft.close_directive("publish")\n    draft.begin()',
        "    draft.begin()",
    ),
    (
        "rule 2: the end of a job leaves the directive in the outbox",
        "drafts",
        '        self.close_directive("withdraw", WITHDRAWN)\n',
        "",
    ),
    (
        "rule 3: a try is not counted before it is published",
        "publishing",
        "tries = row.tries + 1\n",
        "tries = row.tries\n",
    ),
    (
        "rule 3: taking is no exclusive right",
        "publishing",
        "tries=tries, next_try_at=now.wall + next_try_ms(tries)",
        "tries=tries",
    ),
    (
        "rule 4: an older try's failure counts",
        "publishing",
        " or found[1].tries != request.try_no",
        "",
    ),
    (
        "rule 5: a take does not renew the lease",
        "publishing",
        "    draft.move_step(step._replace(lease_expires_at=now.wall + budget_ms(tries)))\n",
        "",
    ),
    (
        "rule 6: the last try has no exit in take",
        "publishing",
        "if row.tries >= TRIES_MAX:",
        "if row.tries > 99:",
    ),
    (
        "rule 7: a directive of a job that is asked to end is taken",
        "publishing",
        """    if draft.is_cancelling:
        draft.end("settle", None)
        return draft.plan(Heard.CANCELLED, "cancel", step=step.step_id)
    if picture.is_held:
        return unchanged(picture, Heard.NOT_DUE)
    if row.tries""",
        """    if picture.is_held:
        return unchanged(picture, Heard.NOT_DUE)
    if row.tries""",
    ),
    (
        "rule 7: a directive that nobody publishes is not withdrawn by a cancellation",
        "sweeping",
        "not (row.is_pulled or row.next_try_at <= now.wall)",
        "True",
    ),
    (
        "rule 8: a heartbeat extends a step of a job that is asked to end",
        "callbacks",
        "    if picture.job.state == JobState.CANCELLING:\n",
        "    if False:\n",
    ),
    (
        "rule 9: a RESULT while DISPATCHING is refused",
        "callbacks",
        "if not step.is_in_flight:",
        "if not step.is_in_flight or step.state == StepState.DISPATCHING:",
    ),
    (
        "rule 11: answers are not remembered",
        "callbacks",
        "        answers=_remembering(step, given.digest),\n",
        "",
    ),
    (
        "rule 12: an implied ACK does not begin the job",
        "callbacks",
        "    draft.begin()\n    begun",
        "    begun",
    ),
    (
        "rule 13: a directive that is asked for is nobody's to end",
        "sweeping",
        "if row is None or not row.is_pulled:",
        "if True:",
    ),
    (
        "equality of lease and now is not expired",
        "rows",
        "self.lease_expires_at <= now",
        "self.lease_expires_at < now",
    ),
    (
        "a fourth attempt",
        "callbacks",
        "step.attempt_no < tries.attempts_max",
        "step.attempt_no <= tries.attempts_max",
    ),
    (
        "the next step is not dispatched",
        "callbacks",
        "            draft.dispatch(draft.steps[following], request.lease_id, relays=request.relays)\n",
        "            pass\n",
    ),
    ("a step that ends is not counted", "callbacks", "        draft.count(1, closes=False)\n", ""),
    ("an answer has no digits", "callbacks", "        draft.answer(ended, closes=False)\n", ""),
    ("a directive is not counted in the digits", "drafts", "first_entry(step.ledger)[1]", "step.ledger"),
    ("a directive keeps the lease of the one before", "drafts", "lease_id=lease_id, ledger", "ledger"),
    (
        "SENT does not start the time of the ACK",
        "publishing",
        "lease_expires_at=now.wall + ack_ms",
        "attempt_no=step.attempt_no",
    ),
    (
        "the ACK does not start the time of the work",
        "callbacks",
        "lease_expires_at=now.wall + lease_ms, acked_at",
        "acked_at",
    ),
    (
        "a failed attempt waits for nothing",
        "callbacks",
        "lease_expires_at=now.wall + wait_ms",
        "lease_expires_at=None",
    ),
    (
        "the closer has no digit",
        "drafts",
        "answer(self.steps[step.step_index], closes=True)",
        "answer(self.steps[step.step_index], closes=False)",
    ),
    (
        "the time to be asked for goes on while a job is held",
        "sweeping",
        "    if picture.is_held:\n        return unchanged(picture, Heard.NOT_DUE)\n    return never_taken",
        "    return never_taken",
    ),
    (
        "a directive that was held keeps the rest of its time",
        "publishing",
        "lease_expires_at=now.wall + start_ms, rev",
        "rev",
    ),
    (
        "the step at which a held job waits is not due when it is resumed",
        "drafts",
        "self.move_step(step._replace(lease_expires_at=self._now))",
        "self.move_step(step)",
    ),
    (
        "a held job does not say at which step it waits",
        "drafts",
        "self.job._replace(current_step_id=step.step_id, current_step_index=step.step_index)",
        "self.job",
    ),
    (
        "what waits at a held job is not dispatched by the sweep",
        "sweeping",
        "if step.state in (StepState.PENDING, StepState.FAILED_RETRY):",
        "if step.state == StepState.FAILED_RETRY:",
    ),
    (
        "an attempt that waits at a held job forgets when it is due",
        "sweeping",
        "if picture.in_workflow and (",
        "if True and (",
    ),
    ("a cancellation has no closer", "drafts", "            self._close_by_root()\n", "            pass\n"),
)
"""Mistakes that no missing guard describes."""


@cache
def source(name: str) -> str:
    return Path(str(importlib.import_module(MODULES[name]).__file__)).read_text("utf-8")


def load(changed: dict[str, ast.Module] | None = None, *also: str) -> SimpleNamespace:
    """Return the modules that decide, those in `changed` and all others made from another tree; "
    "`also` too."""
    if not changed:
        found = {name: importlib.import_module(path) for name, path in MODULES.items()}
        return SimpleNamespace(**found, msgspec=msgspec)
    paths = MODULES | {path.rpartition(".")[2]: path for path in also}
    kept = {path: importlib.import_module(path) for path in paths.values()}
    made = {}
    try:
        for name, path in paths.items():
            module = ModuleType(path)
            module.__dict__.update(
                __file__=kept[path].__file__, __path__=getattr(kept[path], "__path__", None)
            )
            sys.modules[path] = module
            exec(
                compile(changed[name], path, "exec") if name in changed else _compiled(path), module.__dict__
            )
            made[name] = module
    finally:
        sys.modules.update(kept)
    return SimpleNamespace(**made, msgspec=msgspec)


@cache
def _compiled(path: str):
    text = Path(str(importlib.import_module(path).__file__)).read_text("utf-8")
    return compile(text, path, "exec")


def mutants() -> list[Mutant]:
    """Return every mutant that must be caught."""
    return [mutant for mutant in of_every_guard() if mutant.name not in NOT_SEEN] + list(_known())


def of_every_guard() -> list[Mutant]:
    """Return a mutant for every guard, also those that no world misses."""
    return [mutant for module, functions in GUARDED.items() for mutant in _guards(module, functions)]


def _guards(module: str, functions: tuple[str, ...]) -> Iterator[Mutant]:
    for function in functions or functions_of(ast.parse(source(module))):
        for n, (name, _change) in enumerate(changes_in(ast.parse(source(module)), function)):
            yield Mutant(
                f"{module}.{function}: {name}", module, partial(_changed, module, function, n), frozenset()
            )


def _changed(module: str, function: str, n: int) -> ast.Module:
    tree = ast.parse(source(module))
    _name, change = list(changes_in(tree, function))[n]
    change()
    return ast.fix_missing_locations(tree)


def _known() -> Iterator[Mutant]:
    for name, module, old, new in KNOWN:
        text = source(module)
        if text.count(old) != 1:
            raise LookupError(f"{module} says {old!r} {text.count(old)} times")
        yield Mutant(name, module, partial(ast.parse, text.replace(old, new)), frozenset())
