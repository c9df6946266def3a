"""Hooks that a program declares: around its workers, and for jobs that end or are held."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from tallystick.app.api.job import Job
from tallystick.core.lifecycles import JobState
from tallystick.core.verbs.hooks import HELD, HOOK_OF
from tallystick.worker.hooks import Around

R = TypeVar("R")


class Hooks(ABC):
    """The part of a Tally that calls functions of its program."""

    def __init__(self) -> None:
        """Begin with none."""
        self._around = Around()
        self.hook_names = self._around.hook_names

    @abstractmethod
    def job(self, job_id: str) -> Job[Any]:
        """Return a job by its id."""

    @property
    def around(self) -> Around:
        """Return what each of its workers calls."""
        return self._around

    def on_worker_start(self, fn: Callable[[], R], /) -> Callable[[], R]:
        """Have this called in every worker process before it claims its first job, on its loop if async.

        If it raises, the worker does not start.
        """
        self._around = self._around._replace(start=(*self._around.start, fn))
        return fn

    def on_worker_stop(self, fn: Callable[[], R], /) -> Callable[[], R]:
        """Have this called when a worker has stopped and nothing runs any more; the last declared first."""
        self._around = self._around._replace(stop=(*self._around.stop, fn))
        return fn

    def on_succeeded(self, fn: Callable[[Job[Any]], R], /) -> Callable[[Job[Any]], R]:
        """Have this called when a job of this Tally has succeeded: at least once, by any of its workers.

        That is durable with the end of the job, and the call comes after it: nothing that it raises changes
        the job. It is called again, with growing pauses, until it returns.
        """
        return self._hook(HOOK_OF[JobState.SUCCEEDED], fn)

    def on_failed(self, fn: Callable[[Job[Any]], R], /) -> Callable[[Job[Any]], R]:
        """Have this called when a job of this Tally has failed for good; as `on_succeeded` in all else."""
        return self._hook(HOOK_OF[JobState.FAILED_FINAL], fn)

    def on_cancelled(self, fn: Callable[[Job[Any]], R], /) -> Callable[[Job[Any]], R]:
        """Have this called when a job of this Tally was cancelled, also by its deadline; else as above."""
        return self._hook(HOOK_OF[JobState.CANCELLED], fn)

    def on_held(self, fn: Callable[[Job[Any]], R], /) -> Callable[[Job[Any]], R]:
        """Have this called for each hold of a job of this Tally, which may be over by then; else as above."""
        return self._hook(HELD, fn)

    def _hook(self, hook: str, fn: Callable[[Job[Any]], R]) -> Callable[[Job[Any]], R]:
        if inspect.iscoroutinefunction(fn):

            async def call_async(job_id: str) -> None:
                await fn(self.job(job_id))

            call: Callable[[str], Any] = call_async
        else:

            def call(job_id: str) -> None:
                fn(self.job(job_id))

        self._around = self._around.with_hook(hook, call)
        self.hook_names = self._around.hook_names
        return fn
