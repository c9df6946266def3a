"""The rule that is written down is the rule that runs: what a layer declares is used, paths are legal."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from tallystick.core.lifecycles import MACHINES
from tests.tidy.tree import ROOT, SRC, parsed, python_files, short

LAYERS = [
    path for layer in ("core", "store", "engine", "worker", "app") for path in python_files(SRC / layer)
]
# What uses a rule: the package without the suites that it ships, and the scripts that print pages.
USERS = [path for path in python_files() if not path.is_relative_to(SRC / "testing")]
SCRIPTS = [ROOT / "scripts" / "docs.py"]
# People write the rule blocks of a schema with the first; the others are loaded by the name of their module.
FOR_OTHERS = {"refresh", "LentDialect", "signed", "is_signed_by"}
PATH = re.compile(r"[A-Z_]+(?:>[A-Z_]+)+")


def declared(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return the public names that a module makes, with the statement that makes each."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
    return {name: node for name, node in found.items() if not name.startswith("_")}


def loaded(tree: ast.AST, *, without: ast.AST | None = None) -> set[str]:
    """Return the names that are read in a tree, but for a part of it."""
    skipped = set(ast.walk(without)) if without else set()
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if node not in skipped
        and (
            (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)) or isinstance(node, ast.Attribute)
        )
    }


def dotted(path: Path) -> str:
    """Return the name of a module as it is imported."""
    return ".".join(path.relative_to(SRC.parent).with_suffix("").parts)


@cache
def taken() -> set[tuple[str, str]]:
    """Return (module, name) for everything that a file of the product takes from a module of a layer."""
    found: set[tuple[str, str]] = set()
    modules = {dotted(path) for path in LAYERS}
    for path in (*USERS, *SCRIPTS):
        tree = parsed(path)
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            found |= {(str(node.module), alias.name) for alias in node.names}
            whole = modules & {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {(module, name) for module in whole for name in loaded(tree)}
    return found


def unused(path: Path) -> list[str]:
    """Return what a module of a layer declares and no part of the product uses."""
    tree = parsed(path)
    rest = {name: node for name, node in declared(tree).items() if (dotted(path), name) not in taken()}
    return [name for name, node in rest.items() if name not in loaded(tree, without=node)]


def test_what_a_layer_declares_is_used_by_the_product():
    found = {short(path): names for path in LAYERS if (names := sorted({*unused(path)} - FOR_OTHERS))}
    assert found == {}


def test_a_path_that_a_fact_tells_is_a_path_of_its_machine():
    """Paths in the texts of facts are written out where a machine is too slow to be asked each time."""
    moves = {
        (move.source.name, move.target.name) for machine in MACHINES.values() for move in machine.transitions
    }
    told = {
        (short(path), found)
        for path in USERS
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in PATH.findall(node.value)
    }
    assert told
    illegal = [
        (name, found)
        for name, found in sorted(told)
        for states in [found.split(">")]
        if not all(pair in moves for pair in pairwise(states))
    ]
    assert illegal == []
