"""Calls of remote steps that are open: the answer is for the call that opened the step, and for no other."""

from __future__ import annotations

from typing import Final

from tallystick.core.pictures import Picture, Place
from tallystick.core.plans import Refusal
from tallystick.core.values import Wait
from tallystick.errors import CallDiffers

# How many characters of the arguments of two calls an error shows.
_SHOWN_MAX: Final = 200


def asked_otherwise(picture: Picture, place: Place, wait: Wait) -> Refusal | None:
    """Refuse a call that is not the one for which its step was opened: the answer to that is not for it."""
    asks, step = wait.asks, picture.remotes.get(place)
    if asks is None or step is None or (step.service, step.step_type, step.payload) == asks[:3]:
        return None
    name = f"{wait.name}#{wait.occurrence}"
    was = f"{step.step_type} of {step.service} with {_clipped(step.payload)}"
    now = f"{asks.step_type} of {asks.service} with {_clipped(asks.payload)}"
    return Refusal(
        CallDiffers(f"{name} was asked for as {was}, and is called as {now}", job_id=step.job_id, step=name)
    )


def _clipped(payload: str | None) -> str:
    """Return the beginning of arguments, for people."""
    text = payload or "nothing"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
