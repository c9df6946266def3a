"""Build the documentation site: `make site` writes it to build/site/html.

The pages that people wrote are taken as they are, with the tree around them, so that links mean the same on
the site as in the repository. Beside them stand pages that are made from code: every public name, every
command, every route, every error. Sphinx makes HTML of all of it, and a warning of Sphinx fails the build.
"""

from __future__ import annotations

import importlib
import inspect
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tallystick import errors
from tallystick.cli.group import tally
from tallystick.http.openapi import document

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("docs", "examples", "demo")
# What a program imports from; the names are those that each of them says are public.
MODULES = (
    "tallystick",
    "tallystick.aio",
    "tallystick.errors",
    "tallystick.http",
    "tallystick.dashboard",
    "tallystick.remote",
    "tallystick.remote.signatures",
    "tallystick.testing",
    "tallystick.testing.stepping",
    "tallystick.testing.remote_hand",
    "tallystick.watch.prometheus",
    "tallystick.runs",
    "tallystick.stage",
)
RECORDS = """
```{toctree}
:hidden:
:glob:

0*
```
"""


def main(given: list[str]) -> int:
    """Put the pages together and build the site, in a folder if one is given; return what Sphinx returns.

    If pages are given too, all are read and their links followed, but HTML is made of these alone.
    """
    build = Path(given[0]) if given else ROOT / "build" / "site"
    source, html = build / "source", build / "html"
    shutil.rmtree(build, ignore_errors=True)
    gather(source)
    for name, text in reference().items():
        path = source / "reference" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    pages = [str(source / name) for name in given[1:]]
    if pages:
        failed = _sphinx("dummy", "-W", source, build / "read") or _sphinx("html", "-Q", source, html, *pages)
    else:
        failed = _sphinx("html", "-W", source, html)
    if not failed:
        print(f"site: {html / 'index.html'}")
    return failed


def _sphinx(builder: str, warnings: str, source: Path, target: Path, *pages: str) -> int:
    """Let Sphinx build pages, or all of them; with `-W` a warning is an error, with `-Q` none is told."""
    command = [sys.executable, "-m", "sphinx", "-b", builder, warnings, "--keep-going", "-q", "-j", "2"]
    kept = ["-d", str(source.parent / "doctrees")]
    words = [*command, *kept, str(source), str(target), *pages]
    return subprocess.run(words, check=False).returncode  # noqa: S603 (our own words)


def gather(source: Path) -> None:
    """Copy what people wrote."""
    unwanted = shutil.ignore_patterns("__pycache__", "*.db*", "site")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, source / folder, ignore=unwanted)
    for path in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "Makefile"):
        shutil.copy(path, source)
    shutil.copytree(ROOT / "bench", source / "bench", ignore=lambda _folder, names: {*names} - {"README.md"})
    shutil.copytree(ROOT / "docs" / "site", source, dirs_exist_ok=True)
    with (source / "docs" / "adr" / "README.md").open("a", encoding="utf-8") as records:
        records.write(RECORDS)
    index = source / "index.md"
    # It is the first page of the site, one folder above where it stands here.
    text = index.read_text("utf-8").replace("](../", "](docs/")
    for folder, last in (("docs/guides", "docs/guides/command-line"), ("docs", "docs/model-checking")):
        pages = [f"{folder}/{page.stem}" for page in sorted((source / folder).glob("*.md"))]
        left = [page for page in pages if f"{page}\n" not in text]
        text = text.replace(f"{last}\n", "\n".join([last, *left, ""]))
    index.write_text(text, "utf-8")


def reference() -> dict[str, str]:
    """Return the pages that are made from code."""
    return {"api.md": api(), "commands.md": commands(), "http.md": http(), "errors.md": catalogue()}


def api() -> str:
    """Return a page with every public name."""
    lines = ["# API", "", "Every public name, by the module that a program imports it from.", ""]
    for module in MODULES:
        lines += [f"## `{module}`", "", *_told(importlib.import_module(module)), ""]
    return "\n".join(lines)


def _told(module: Any) -> Iterator[str]:  # noqa: ANN401 (a module, whose attributes are asked for by name)
    if module is errors:
        yield "All errors are in [the catalogue](errors.md)."
        return
    yield "```{eval-rst}"
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, BaseException):
            yield f".. autoexception:: {module.__name__}.{name}"
        elif isinstance(value, type):
            yield f".. autoclass:: {module.__name__}.{name}"
            yield "   :members:"
            yield "   :inherited-members: str, tuple, NamedTuple, Generic, ABC, Protocol, Struct"
        elif callable(value):
            yield f".. autofunction:: {module.__name__}.{name}"
        else:
            yield f".. autodata:: {module.__name__}.{name}"
    yield "```"


def commands() -> str:
    """Return a page with what every command says of itself."""
    lines = [
        "# Commands",
        "",
        "What `--help` says of each command; [the guide](../docs/guides/command-line.md) shows some at work.",
    ]
    for words, text in _helped(tally, click.Context(tally, info_name="tally", terminal_width=100)):
        lines += ["", f"## `{words}`", "", "```text", text.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _helped(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _helped(below, click.Context(below, context, info_name=name, terminal_width=100))


def http() -> str:
    """Return a page with every route of `tally serve`."""
    lines = [
        "# HTTP",
        "",
        "The routes of `tally serve`, from the OpenAPI document that it answers with at `/openapi.json`.",
        "[The guide](../docs/guides/http-api.md) says how to get a key.",
    ]
    for path, operations in document()["paths"].items():
        for method, said in operations.items():
            lines += ["", f"## `{method.upper()} {path}`", "", said["summary"], ""]
            lines += [
                f"- `{each['name']}` ({each['in']}{', required' if each.get('required') else ''})"
                for each in said["parameters"]
            ]
            body = (
                said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            )
            if "$ref" in body:
                lines += [f"- body: `{body['$ref'].rsplit('/', 1)[-1]}`"]
            lines += ["", "| status | answer |", "|---|---|"]
            lines += [f"| {status} | {_answer(answer)} |" for status, answer in said["responses"].items()]
    return "\n".join(lines) + "\n"


def _answer(answer: dict[str, Any]) -> str:
    kinds = [each["schema"].get("$ref", "").rsplit("/", 1)[-1] for each in answer.get("content", {}).values()]
    return f"{answer['description']}{''.join(f', `{kind}`' for kind in kinds if kind)}"


def catalogue() -> str:
    """Return a page with every error: its code, what it means, what to do."""
    lines = [
        "# Errors",
        "",
        "Every error has a code that never changes, and fields that a program can read. The code",
        "is what `--json`, problem details over HTTP and the log say.",
    ]
    remedies = tomllib.loads((ROOT / "docs" / "site" / "remedies.toml").read_text("utf-8"))
    for name in sorted(errors.__all__, key=lambda each: getattr(errors, each).code):
        error = getattr(errors, name)
        meaning = inspect.cleandoc(error.__doc__ or "")
        lines += ["", f"## {error.code}", "", f"`tallystick.errors.{name}`", "", meaning, ""]
        lines += [f"- **What to do:** {remedies[error.code]}"]
        lines += [f"- Exit code of a command: {error.exit_code}; status over HTTP: {error.http_status}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
