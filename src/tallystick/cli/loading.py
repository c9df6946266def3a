"""From `shop:app` to the Tally it names, and from a mistake on that way to one or two lines.

The address is MODULE:ATTRIBUTE, the attribute may have dots, and `app` is meant when there is none. The
current directory comes first on the path, as it does for `python`.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from tallystick.app.api.tally import Tally
from tallystick.app.api.workflows import AsyncWorkflow, Workflow
from tallystick.cli.render.wording import in_short
from tallystick.defaults import QUEUE
from tallystick.errors import AppBroken, AppNotFound, BadInput, UnknownWorkflow

DEFAULT_ATTRIBUTE: Final = "app"

_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")

AnyWorkflow = Workflow[..., Any] | AsyncWorkflow[..., Any]


class Loaded(NamedTuple):
    """A Tally and the file that declares it."""

    app: Tally
    address: str
    file: Path | None


def load_app(address: str) -> Loaded:
    """Import the module of an address and return the Tally there."""
    name, _, attribute = address.partition(":")
    attribute = attribute or DEFAULT_ATTRIBUTE
    module = _module(name, address)
    found = _attribute(module, name, attribute)
    if not isinstance(found, Tally):
        raise BadInput(
            f"{name}:{attribute} is {_kind(found)}, not a Tally; name the object you made with Tally(...)",
            address=address,
        )
    return Loaded(found, f"{name}:{attribute}", _file_of(module))


def load_workflow(address: str, version: str | None) -> tuple[Loaded, AnyWorkflow]:
    """Return the workflow behind MODULE:WORKFLOW or MODULE:APP:WORKFLOW, with the Tally that declares it.

    In the short form the name is that of a workflow of `app`, or of an attribute that holds a workflow.
    """
    name, _, rest = address.partition(":")
    attribute, _, label = rest.rpartition(":")
    if not label:
        raise BadInput(
            f"{address!r} names no workflow; write MODULE:WORKFLOW or MODULE:APP:WORKFLOW", address=address
        )
    if not attribute:
        module = _module(name, address)
        held = _held(module, name, label)
        if isinstance(held, Workflow | AsyncWorkflow) and version in (None, held.version):
            return Loaded(held.app, f"{name}:{label}", _file_of(module)), held
    loaded = load_app(f"{name}:{attribute or DEFAULT_ATTRIBUTE}")
    return loaded, find_workflow(loaded.app, label, version)


def declared_queues(app: Tally) -> frozenset[str]:
    """Return the queues that a worker of this app serves unless told otherwise."""
    return frozenset({workflow.queue for workflow in app.workflows.values()} | {QUEUE})


def find_workflow(app: Tally, label: str, version: str | None) -> AnyWorkflow:
    """Return a workflow by its name, guessing aloud when there is none; versions are told apart."""
    versions = {key[1]: workflow for key, workflow in app.workflows.items() if key[0] == label}
    if not versions:
        names = sorted({key[0] for key in app.workflows})
        close = get_close_matches(label, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
        raise UnknownWorkflow(f"there is no workflow {label!r}; {hint}", workflow=label, known=names)
    if version is None and len(versions) == 1:
        return next(iter(versions.values()))
    if version not in versions:
        known = ", ".join(map(repr, versions))
        raise UnknownWorkflow(
            f"{label} has the versions {known}; say which one with --version", workflow=label, known=known
        )
    return versions[version]


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 (the path of Python holds text)
    except FileNotFoundError:
        raise BadInput("the current folder is gone; go to one that is there") from None


def _module(name: str, address: str) -> ModuleType:
    if not _DOTTED.fullmatch(name):
        raise BadInput(
            f"{address!r} is not the address of a Tally; write MODULE:ATTRIBUTE, "
            f"for instance {_meant(name)}:app",
            address=address,
        )
    here = _here()
    if sys.path[:1] != [here]:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            hint = f"; a module is named without .py: {_meant(name)}" if name.endswith(".py") else ""
            raise AppNotFound(
                f"there is no module {name!r} in {here} or on the path of Python{hint}", module=name
            ) from None
        raise broken(name, error) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (whatever the user's file does is said in two lines)
        raise broken(name, error) from None


def _meant(name: str) -> str:
    """Return the module that is meant by the name of a file."""
    path = Path(name)
    return path.stem if path.suffix == ".py" and path.stem.isidentifier() else "shop"


def broken(name: str, error: BaseException) -> AppBroken:
    """Return the error for a module that raised: where, what, and the line of source."""
    if isinstance(error, SyntaxError) and isinstance(error.filename, str):
        file, line, source = error.filename, error.lineno or 0, str(error.text or "")
        what = f"{type(error).__name__}: {error.msg}"
    else:
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_users(frame.filename)
        ]
        last = frames[-1] if frames else None
        file, line, source = (last.filename, last.lineno or 0, last.line or "") if last else (name, 0, "")
        what = in_short(error)
    return AppBroken(
        f"{_short(file)}, line {line}: {what}\n  {source.strip()}", module=name, file=file, line=line
    )


def _is_of_users(file: str) -> bool:
    """Tell frames of the user's files from those of Python's import and of this package."""
    ours = str(Path(__file__).parents[1])
    return not file.startswith(("<frozen", ours)) and f"{os.sep}importlib{os.sep}" not in file


def _attribute(module: ModuleType, name: str, attribute: str) -> object:
    found: object = module
    for part in attribute.split("."):
        try:
            found = _reached(found, part, name)
        except AttributeError:
            raise AppNotFound(
                f"{name} has no {attribute!r}{_hint(found, part)}", module=name, attribute=attribute
            ) from None
    return found


def _held(module: ModuleType, name: str, attribute: str) -> object:
    """Return what the module holds under that name, or None."""
    found: object = module
    for part in attribute.split("."):
        try:
            found = _reached(found, part, name)
        except AttributeError:
            return None
    return found


def _reached(found: object, part: str, name: str) -> object:
    """Return an attribute, which may be code of the user's: what else it raises is shown as of an import."""
    try:
        return getattr(found, part)
    except (AttributeError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 (as above)
        raise broken(name, error) from None


def _hint(found: object, part: str) -> str:
    # What lies in the dictionary can be looked at without calling anything.
    held = getattr(found, "__dict__", {})
    names = [name for name in held if isinstance(name, str) and not name.startswith("_")]
    tallies = [name for name in names if isinstance(held[name], Tally)]
    close = tallies or get_close_matches(part, names, n=1)
    if close:
        return f"; did you mean {' or '.join(map(repr, close[:3]))}?"
    return "; write MODULE:ATTRIBUTE, where the attribute is what you made with Tally(...)"


def _kind(value: object) -> str:
    kind = type(value).__name__
    return f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"


def _file_of(module: ModuleType) -> Path | None:
    # A module may put anything in its own place.
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
