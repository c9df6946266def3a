"""The drawing of the errors is the tree of the classes, and every error is met under its public name."""

from __future__ import annotations

import ast

from tallystick import errors
from tests.tidy.tree import SRC, parsed, python_files


def drawn() -> dict[str, str]:
    """Return the parent of every class in the drawing, by the depth of its branch."""
    parents, above = {"TallyError": "Exception"}, ["TallyError"]
    for line in (errors.__doc__ or "").splitlines():
        branch, found, rest = line.partition("── ")
        if found:
            depth = len(branch) // 4 + 1
            name = rest.split()[0]
            parents[name] = above[depth - 1]
            above[depth:] = [name]
    return parents


def written() -> dict[str, str]:
    """Return the class above every class that the files of the package define."""
    return {
        node.name: ast.unparse(node.bases[0])
        for path in python_files(SRC / "errors")
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
    }


def test_the_drawing_shows_every_class_below_its_parent():
    assert drawn() == written()


def test_the_drawing_names_the_file_above_the_classes_of_that_file():
    home, homes = "", {}
    for line in (errors.__doc__ or "").splitlines():
        last = line.split()[-1] if line.split() else ""
        home = last if last.endswith(".py") else home
        if "── " in line:
            homes[line.partition("── ")[2].split()[0]] = home
    files = {
        node.name: path.name
        for path in python_files(SRC / "errors")
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
    }
    assert homes == {name: home for name, home in files.items() if name != "TallyError"}


def test_every_error_is_exported_and_known_by_its_public_name():
    """Retry policies and stored failures name errors; moving a class between files must not rename it."""
    assert set(errors.__all__) == set(written())
    assert {getattr(errors, name).__module__ for name in errors.__all__} == {"tallystick.errors"}


def test_no_two_errors_share_a_code():
    kinds = [getattr(errors, name) for name in errors.__all__]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)
