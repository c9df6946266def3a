"""Call hooks: the functions that a program declares for the ends and holds of its jobs.

It looks when a job has ended here, and otherwise once per second, at what `Store.owed_hooks` finds. A hook is
taken under a guard, called, and told; whatever it raises is logged and changes nothing about the job.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import ClassVar, Final

from tallystick.core.limits import SWEEP_ROWS_MAX
from tallystick.core.verbs.hooks import again_ms, hook_of
from tallystick.engine.failure import Failure
from tallystick.store.api import OwedHook, TakeHook, TellHook
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker

_log = logging.getLogger("tallystick.worker")

LOOK_SECONDS: Final = 1.0


class CallHooks(Role):
    """Calls the hooks that are owed to jobs of its program, whichever process ended them."""

    name: ClassVar = "call hooks"
    rest = LOOK_SECONDS

    def __init__(self, worker: Worker) -> None:
        """Prepare; the first turn looks."""
        self._worker = worker
        self._workflows = sorted({name for name, _version in worker.handlers})

    def run(self) -> None:
        """Call what is owed now, one after the other."""
        for owed in self._worker.store.owed_hooks(self._workflows, SWEEP_ROWS_MAX):
            if hook_of(owed.state, owed.hold, owed.hook_told) in self._worker.hooks:
                self._serve(owed)

    def _serve(self, owed: OwedHook) -> None:
        worker = self._worker
        hook = worker.committer.call((TakeHook(owed.job_id, owed.hook_tries, worker.options.lease_ms),))
        if not isinstance(hook, str) or hook not in worker.hooks:
            return  # another worker has it, or the job moved on to a hook that is not declared here
        tries = owed.hook_tries + 1
        told = TellHook(owed.job_id, tries, hook)
        try:
            for function in worker.hooks[hook]:
                worker.call(partial(function, owed.job_id))
        except BaseException as error:  # noqa: BLE001 (a function of the user: logged, and called again later)
            later_ms, failure = again_ms(tries), Failure.of(error)
            about = {"action": "hook.failed", "job_id": owed.job_id, "hook": hook, "tries": tries}
            _log.exception(
                "job %s: its hook on_%s raised; it is called again in %.0f s",
                *(owed.job_id, hook, later_ms / 1000),
                extra=about,
            )
            told = told._replace(error=f"{failure.type}: {failure.message}", later_ms=later_ms)
        worker.committer.call((told,))
