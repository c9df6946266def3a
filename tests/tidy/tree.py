"""The files of the project, as the house rules look at them: tracked ones, parsed once."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "tallystick"

# Only for a copy without git, where nothing else says what belongs to the project.
NOT_OURS = {
    ".git",
    ".hypothesis",
    ".import_linter_cache",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tools",
    ".venv",
    "__pycache__",
    "build",
    "dist",
}


@cache
def project_files() -> tuple[Path, ...]:
    """Return every file that git knows or would add; without git, every file outside caches."""
    if (ROOT / ".git").exists():
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split(
            "\0"
        )
        paths = [ROOT / name for name in names if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(folder: Path = SRC) -> list[Path]:
    """Return the Python files of the project below a folder."""
    return [path for path in project_files() if path.suffix == ".py" and path.is_relative_to(folder)]


def short(path: Path) -> str:
    """Return the path as a reader of a failure wants it."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Return every comment of a source text with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def docstring_nodes(tree: ast.Module) -> Iterator[ast.Constant]:
    """Return the docstrings of a module, its classes and its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                    yield text


def offences(path: Path, found: Iterator[tuple[int, str]]) -> list[str]:
    """Return findings as lines that an editor can jump to."""
    return [f"{short(path)}:{line}: {what}" for line, what in found]
