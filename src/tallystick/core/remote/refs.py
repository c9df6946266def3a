"""References: where inputs and outputs are kept, told and kept word for word.

What is known of a reference is checked. Members that are not known here are kept as they were sent, wherever
the reference travels: two that differ in one of them are two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

F = TypeVar("F", bound=msgspec.Struct)

Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
# No text begins like an object: in the row of a job the one is told from the other by that.
Place: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^[^{\x00]")]


class Ref(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """Where something is kept, and what is known of it."""

    uri: Text
    checksum: str | None = None
    size_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    content_type: str | None = None
    metadata: dict[str, object] | None = None

    @property
    def more(self) -> dict[str, object]:
        """Return the members that were sent with it and are not known here."""
        return dict(self.__dict__)


AnyRef: TypeAlias = Place | Ref

_REFS: Final = ("input_ref", "workspace_ref", "output_ref", "artifact_refs")
"""Members of forms that are references, or lists of them."""


def keep_more(form: object, said: object) -> None:
    """Keep in the references of a form what was said of them that is not known here."""
    if not isinstance(said, dict):
        return
    for name in _REFS:
        # A member that this form does not have may be anything.
        for ref, sent in zip(_listed(getattr(form, name, None)), _listed(said.get(name)), strict=False):
            if isinstance(ref, Ref) and isinstance(sent, dict):
                known = ref.__struct_fields__
                ref.__dict__.update((key, value) for key, value in sent.items() if key not in known)


def _listed(found: object) -> list[object]:
    return found if isinstance(found, list) else [found]


def has_objects(form: object) -> bool:
    """Tell whether a form has a reference that is an object, which may have been sent with more."""
    return any(isinstance(ref, Ref) for ref in _refs_of(form))


def _refs_of(form: object) -> Iterator[object]:
    for name in _REFS:
        yield from _listed(getattr(form, name, None))


def told_ref(ref: object) -> object:
    """Return a reference as it is written: with all that was said of it.

    >>> ref = Ref("s3://in", size_bytes=3)
    >>> ref.__dict__["version_id"] = 1
    >>> told_ref(ref), told_ref("s3://in")
    ({'uri': 's3://in', 'size_bytes': 3, 'version_id': 1}, 's3://in')
    """
    return {**msgspec.to_builtins(ref), **ref.more} if isinstance(ref, Ref) and ref.more else ref


def told_refs(form: F) -> F:
    """Return a form that is written with all that was said of its references."""
    if not any(isinstance(ref, Ref) and ref.more for ref in _refs_of(form)):
        return form
    found = {name: getattr(form, name) for name in _REFS if hasattr(form, name)}
    told = {
        name: [told_ref(each) for each in ref] if isinstance(ref, list) else told_ref(ref)
        for name, ref in found.items()
    }
    return msgspec.structs.replace(form, **told)


def kept_ref(ref: str | Ref | None) -> str | None:
    """Return a reference as rows keep it: text as it is, an object as JSON."""
    return msgspec.json.encode(told_ref(ref)).decode() if isinstance(ref, Ref) else ref
