"""Hooks of jobs in a store: the right to call one is taken under a guard, and so is its end."""

from __future__ import annotations

from tallystick.core.verbs.hooks import hook_of
from tallystick.store.api import TakeHook, TellHook
from tallystick.store.writing import OpenTransaction


def take_hook(batch: OpenTransaction, request: TakeHook) -> str | None:
    """Take the hook that is owed to a job and return its name; None if there is none to take."""
    now = batch.wall
    taken = batch.rows("take_hook", (request.job_id, request.tries, now, now + request.lease_ms))
    return next((hook_of(*stands) for stands in taken), None)


def tell_hook(batch: OpenTransaction, request: TellHook) -> bool:
    """Note what came of a call; tell whether the hook was still the caller's."""
    job_id, tries, hook, error, later_ms = request
    about = (hook, None, 0, None) if error is None else (None, batch.wall + later_ms, tries, error)
    return bool(batch.rows("tell_hook", (job_id, tries, *about)))
