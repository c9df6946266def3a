"""What an effect is given, and what its probe may answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class Key(str):
    """The key of one effect: the same for every call of it, so that a provider can tell a second one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Happened(Generic[T]):
    """It has happened, and this is what the call would have returned."""

    result: T


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """It did not happen, and it can no longer happen by a call that was made."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The probe cannot tell: a person must find out."""

    why: str = ""
