"""What a program does around its worker, and what it wants to be called for the ends of its jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tallystick.core.verbs.hooks import named

_NO_HOOKS: Final[Mapping[str, tuple[Callable[[str], Any], ...]]] = MappingProxyType({})


class Around(NamedTuple):
    """Functions in the order of their declaration; coroutine functions run on the loop of the worker.

    `start` is called before the first claim, `stop` after the last segment; `hooks` are called with the id of
    a job that has come to where its hook belongs (`core/verbs/hooks.py`).
    """

    start: tuple[Callable[[], Any], ...] = ()
    stop: tuple[Callable[[], Any], ...] = ()
    hooks: Mapping[str, tuple[Callable[[str], Any], ...]] = _NO_HOOKS

    def with_hook(self, hook: str, function: Callable[[str], Any]) -> Around:
        """Return the same with a further function for a hook."""
        return self._replace(hooks={**self.hooks, hook: (*self.hooks.get(hook, ()), function)})

    @property
    def hook_names(self) -> str | None:
        """Return the names of the hooks as the rows of jobs have them."""
        return named(self.hooks)


AROUND_NOTHING: Final = Around()
