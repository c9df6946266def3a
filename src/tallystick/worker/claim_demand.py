"""When to look for work: as soon as there may be some and a slot is free.

Two numbers decide. `said` counts how often it was said that there may be work; `looked` is what it was when
the last look began that left nothing behind. While they differ, there was a word that no finished look can
have heard, so a look is due. What makes work says so when it is durable. Suspects, of which one runs at a
time, have a number of their own: a look that may not bring one cannot tell whether any is left.

Every method leaves no look due that could be made: it returns the look that its caller has to make, or None.
Nothing here locks; a worker calls it under one lock.
"""

from __future__ import annotations

from typing import NamedTuple

from tallystick.core.limits import CLAIM_BATCH_JOBS_MAX


class Look(NamedTuple):
    """One search for jobs: for how many slots, what had been said when it began, whether for a suspect too.

    The slots of a `shared` look were idle; the others belong to jobs that have just ended.
    """

    slots: int
    began: int
    suspects: bool
    shared: bool


class ClaimDemand:
    """The free slots of a worker, and whether there may be work for them."""

    __slots__ = (
        "_looked",
        "_looked_for_suspects",
        "_said",
        "_sharing",
        "_suspect_out",
        "failed",
        "free",
        "out",
        "shut",
    )

    def __init__(self, slots: int) -> None:
        """Begin with all slots free, and shut; once that is over the first to ask gets the first look."""
        self.free = slots
        # Before its worker has started, and once it is to stop, nothing is looked for and no slot given away.
        self.shut = True
        # Looks that have begun and are not answered.
        self.out = 0
        # A look that could not be made says nothing, and is not made again before the next word.
        self.failed = False
        self._said = self._looked = self._looked_for_suspects = 0
        # One look at a time takes idle slots: it takes all of them, and the next takes what came after it.
        self._sharing = False
        # The holder of this, a look or a running job, may be or bring a suspect; nothing else.
        self._suspect_out = False

    @property
    def wanted(self) -> bool:
        """Tell whether there may be work that no look has seen to the end."""
        if self._said != self._looked:
            return True
        return self._said != self._looked_for_suspects and not self._suspect_out

    def say(self) -> Look | None:
        """There may be work."""
        self._said += 1
        self.failed = False
        return self._due()

    def take(self) -> bool:
        """Take a free slot for work that is known; tell whether there was one."""
        if self.shut or not self.free:
            return False
        self.free -= 1
        return True

    def give_back(self, slots: int = 1) -> Look | None:
        """Slots are free again."""
        self.free += slots
        return self._due()

    def go_on(self, slots: int) -> Look:
        """Begin a look for slots whose jobs have just ended; they stay taken until it is answered.

        Going on though no look is due says that there may be work: the end of a child may wake its parent.
        """
        if not self.wanted:
            self._said += 1
        return self._begin(slots, shared=False)

    def answered(self, look: Look, found: int, *, suspect: bool) -> Look | None:
        """Take what a look has found, and whether a suspect was among it; empty slots are free again."""
        self._ended(look, look.slots - found, suspect=suspect)
        self.failed = False
        if found < look.slots:
            self._looked = max(self._looked, look.began)
            if look.suspects and not suspect:
                self._looked_for_suspects = max(self._looked_for_suspects, look.began)
        return self._due()

    def unanswered(self, look: Look) -> None:
        """Note that a look could not be made; it is made again when the next one speaks."""
        self._ended(look, look.slots, suspect=False)
        self.failed = True

    def suspect_ended(self) -> Look | None:
        """Note that the suspect that ran has ended; the look that brought it has left all others behind."""
        self._suspect_out = False
        return self._due()

    def _due(self) -> Look | None:
        if self.shut or self.failed or self._sharing or not self.free or not self.wanted:
            return None
        slots = min(self.free, CLAIM_BATCH_JOBS_MAX)
        self.free -= slots
        self._sharing = True
        return self._begin(slots, shared=True)

    def _begin(self, slots: int, *, shared: bool) -> Look:
        self.out += 1
        suspects, self._suspect_out = not self._suspect_out, True
        return Look(slots, self._said, suspects, shared)

    def _ended(self, look: Look, empty: int, *, suspect: bool) -> None:
        self.out -= 1
        self.free += empty
        if look.shared:
            self._sharing = False
        if look.suspects and not suspect:
            self._suspect_out = False
