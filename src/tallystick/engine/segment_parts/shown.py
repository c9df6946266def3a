"""Values that a job shows and that are not written yet.

A value that the workflow sets is written with the segment's next bundle, and marked there: a replay does not
set it again. One that a step sets has no mark, because a recorded step is not run again; it may be written at
once, though not more often than once per second, and what is left travels with the step.
"""

from __future__ import annotations

import threading
from typing import Final

from tallystick.core.limits import VALUES_MAX
from tallystick.errors import BadInput
from tallystick.store.api import Bundle, Fence, SetValue

_PAUSE_MS: Final = 1_000


class Shown:
    """What one segment has set; steps that run in threads set values too."""

    __slots__ = ("_fence", "_lock", "_marks", "_names", "_next_at", "_under_way", "_unwritten")

    def __init__(self, fence: Fence) -> None:
        """Begin with none."""
        self._fence = fence
        self._lock = threading.Lock()
        self._unwritten: dict[str, str] = {}
        self._marks: dict[str, object] = {}
        self._names: set[str] = set()
        self._under_way = False
        self._next_at: int | None = None

    @classmethod
    def of(cls, shown: Shown | None, fence: Fence) -> Shown:
        """Return what there is, or a new one."""
        return cls(fence) if shown is None else shown

    def __bool__(self) -> bool:
        """Tell whether anything is to be written."""
        return bool(self._unwritten)

    def put(self, name: str, value: str, mark: str | None = None) -> None:
        """Take a value, in the place of one that was not written yet."""
        with self._lock:
            self._names.add(name)
            if len(self._names) > VALUES_MAX:
                raise BadInput(f"a job shows at most {VALUES_MAX} values; {name!r} is one more")
            self._unwritten[name] = value
            if mark is not None:
                self._marks[mark] = True

    def carried(self) -> tuple[Bundle, dict[str, object]]:
        """Return everything that is not written, to be written now, and its marks."""
        with self._lock:
            taken, self._unwritten = self._unwritten, {}
            marks, self._marks = self._marks, {}
        return self._bundle(taken), marks

    def at_once(self, now: int) -> Bundle:
        """Return what a step may write by itself at this instant; nothing while another write is under way.

        What the workflow has set goes with its mark, and so does everything beside it.
        """
        with self._lock:
            early = self._next_at is not None and now < self._next_at
            if self._under_way or early or self._marks:
                return ()
            taken, self._unwritten = self._unwritten, {}
            self._under_way = True
            self._next_at = now + _PAUSE_MS
        return self._bundle(taken)

    def answered(self, bundle: Bundle, outcome: object) -> None:
        """Hear what became of such a write: what was refused travels with the step, and is judged with it."""
        with self._lock:
            self._under_way = False
            if isinstance(outcome, BaseException):
                for primitive in bundle:
                    assert isinstance(primitive, SetValue), "nothing else is written by itself"
                    self._unwritten.setdefault(primitive.name, primitive.value)

    def _bundle(self, taken: dict[str, str]) -> Bundle:
        return tuple(SetValue(self._fence, name, value) for name, value in taken.items())
