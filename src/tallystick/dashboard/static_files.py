"""Files of the dashboard that never change while it runs: scripts, styles, pictures; read once and kept."""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# A page names a file with its hash, so a browser may keep it; without the hash it asks again.
_KEEP: Final = "private, max-age=31536000, immutable"
_ASK: Final = "no-cache"


class StaticFile(NamedTuple):
    """One file: as it is, packed, and what it is called by."""

    body: bytes
    packed: bytes
    kind: str
    tag: str


@cache
def kept() -> dict[str, StaticFile]:
    """Return all files by their paths; what is not one of them does not exist."""
    found: dict[str, StaticFile] = {}
    root = files(__package__).joinpath("static")
    for path, entry in _walk(root, ""):
        kind = next((kind for ending, kind in _TYPES.items() if path.endswith(ending)), None)
        if kind is not None:
            body = entry.read_bytes()
            found[path] = StaticFile(body, gzip.compress(body, mtime=0), kind, sha256(body).hexdigest()[:16])
    return found


def _walk(folder: Traversable, before: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for entry in folder.iterdir():
        path = f"{before}{entry.name}"
        found += _walk(entry, f"{path}/") if entry.is_dir() else [(path, entry)]
    return found


def address(path: str) -> str:
    """Return how a page names a file."""
    return f"static/{path}?{kept()[path].tag}"


def answer(request: Request, path: str) -> Response | None:
    """Return a file; None if there is none of that name."""
    file = kept().get(path)
    if file is None:
        return None
    headers = {"ETag": f'"{file.tag}"', "Vary": "Accept-Encoding"}
    headers["Cache-Control"] = _KEEP if request.url.query == file.tag else _ASK
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(b"", 304, headers)
    packs = "gzip" in request.headers.get("accept-encoding", "")
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Response(file.packed if packs else file.body, 200, headers, media_type=file.kind)
