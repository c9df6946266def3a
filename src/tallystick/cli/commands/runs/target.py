"""Find the pipeline that a user names on the command line: `module:name` or `file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tallystick.cli.render.wording import in_short
from tallystick.errors import BadInput, TallyError
from tallystick.runs.definition.pipeline import Pipeline


def load_pipeline(target: str) -> Pipeline:
    """Import a pipeline; a mistake in the name or in the user's module is one clear line."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise BadInput(
            f"{target!r} does not name a pipeline: write module:name or file.py:name", target=target
        )
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _from_path(place)
        found = getattr(module, name, None)
    except (TallyError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # The user's module ran and failed; whatever it raised, an exit too, is about the user's code.
        raise BadInput(f"{place} cannot be imported: {in_short(error)}", target=target) from error
    if not isinstance(found, Pipeline):
        raise BadInput(f"{name} in {place} is not a Pipeline", target=target)
    return found


def _from_path(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput(f"there is no file {path}", file=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
