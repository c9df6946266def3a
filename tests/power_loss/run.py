"""Power cuts: record, cut on paper at moments of chance, look, and begin again until the time is up."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tallystick.clock import SystemClock
from tests.power_loss.disk import Disk, Image, Loss
from tests.power_loss.recorder import Ack
from tests.power_loss.verdict import laid_out, looked_at
from tests.power_loss.work import recorded

# Of one recording so many moments are looked at, each with every kind of loss.
MOMENTS = 30
SHOWN_MAX = 10
_FAST = Path("/dev/shm")


@dataclass(slots=True)
class Tally:
    """What was looked at and found; each lost or broken image counts once."""

    images: int = 0
    lost: int = 0
    broken: int = 0
    control_images: int = 0
    control_lost: int = 0
    shown: list[str] = field(default_factory=list)

    @property
    def invalid(self) -> str:
        """Say why the run proves nothing, or nothing."""
        if not self.images:
            return "no image was looked at"
        if not self.control_lost:
            return "with synchronous=NORMAL nothing was lost: these images cannot show a missing sync"
        return ""

    @property
    def clean(self) -> bool:
        """Tell whether everything acknowledged was there every time."""
        return not (self.lost or self.broken or self.invalid)

    def __str__(self) -> str:
        return (
            f"power loss: images={self.images} lost={self.lost} broken={self.broken} "
            f"control_lost={self.control_lost}"
        )


Look = Callable[[Image, list[Ack], str], None]


class Run:
    """So many seconds of recordings and power cuts."""

    def __init__(self, seconds: float, seed: str) -> None:
        self._clock = SystemClock()
        self._until = self._clock.monotonic() + seconds
        self._seed = seed
        self._folder = Path(
            tempfile.mkdtemp(prefix="tallystick-power-loss-", dir=_FAST if _FAST.is_dir() else None)
        )
        self._images = self._folder / "image"
        self._images.mkdir()
        self.tally = Tally()

    def go(self) -> Tally:
        """Cut the power until the time is up; the control, and one recording, are looked at whole."""
        self._round(f"{self._seed} control", "NORMAL", self._look_at_control)
        number = 0
        while not number or self._clock.monotonic() < self._until:
            number += 1
            self._round(f"{self._seed} {number}", "FULL", self._look)
        if self.tally.clean:
            shutil.rmtree(self._folder)
        return self.tally

    def _round(self, seed: str, synchronous: str, look: Look) -> None:
        place = self._folder / f"recording-{seed.replace(' ', '-')}"
        place.mkdir()
        notes = recorded(place, seed, synchronous)
        shutil.rmtree(place)
        chance = random.Random(seed)
        moments = set(chance.sample(range(len(notes)), min(MOMENTS, len(notes))))
        disk = Disk()
        acks: list[Ack] = []
        for moment, note in enumerate(notes):
            if isinstance(note, Ack):
                acks.append(note)
            disk.take(note)
            if moment in moments:
                for loss in Loss if disk.owes else (Loss.DROPPED,):
                    look(
                        disk.image(loss, chance), acks, f"{seed}: {loss.name} after {moment} of {len(notes)}"
                    )

    def _look_at_control(self, image: Image, acks: list[Ack], _about: str) -> None:
        lost, _ = looked_at(laid_out(image, self._images), acks, books=False)
        self.tally.control_images += 1
        self.tally.control_lost += bool(lost)

    def _look(self, image: Image, acks: list[Ack], about: str) -> None:
        lost, broken = looked_at(laid_out(image, self._images), acks)
        tally = self.tally
        tally.images += 1
        tally.lost += bool(lost)
        tally.broken += bool(broken)
        if (lost or broken) and len(tally.shown) < SHOWN_MAX:
            kept = self._folder / f"found-{len(tally.shown) + 1}"
            kept.mkdir()
            laid_out(image, kept)
            tally.shown.append(f"{kept}: {about}: {[*lost, *broken][:3]}")
