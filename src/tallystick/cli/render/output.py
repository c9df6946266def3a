"""How a command speaks: data on stdout, messages on stderr, colour only where a person looks.

Imports almost nothing, because every command pays for it.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from re import Match
    from typing import TextIO

    from tallystick.errors import TallyError

OUTPUT_LOST: Final = 1
UNTRUE: Final = 1
BAD_USAGE: Final = 2
FINDINGS: Final = 6
INTERRUPTED: Final = 130
READER_GONE: Final = 141

EXIT_MEANINGS: Final = {
    0: "done",
    1: "it failed; for `tally verify`: the books are not true; for `tally run`: the run is CANCELLED now, or "
    "another process works on it; "
    "for `tally work`: something was left to its lease, or a process died",
    BAD_USAGE: "bad usage: an unknown command or option, or a missing argument; for `tally run`: the run is "
    "FAILED now",
    3: "not found: no such job, step, module, attribute or workflow",
    4: "an illegal value: it was understood and cannot be accepted",
    5: "the store: missing, full, locked, damaged or not ours; nothing of the command became durable",
    FINDINGS: "`tally doctor` found problems",
    INTERRUPTED: "interrupted by the keyboard; also a second SIGINT to `tally work`",
    READER_GONE: "the reader of the output has gone",
    143: "a second SIGTERM to `tally work`",
}

_CODES: Final = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}

_OBEYED: Final = "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"


class ReaderGone(Exception):
    """The reader of our output has seen enough and closed the pipe."""


class OutputLost(Exception):
    """What was to be read cannot be written: a full disk, or a stream that is only for reading."""

    def __init__(self, error: OSError) -> None:
        """Say what the operating system says."""
        super().__init__(f"the output cannot be written: {error.strerror or error}")


@contextmanager
def arriving() -> Iterator[None]:
    """Tell what goes wrong with an output from what else goes wrong."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise OutputLost(error) from error


class Ink:
    """Paints text, or leaves it as it is when no terminal would show the colour."""

    def __init__(self, *, wet: bool) -> None:
        """Paint only when wet."""
        self.wet = wet

    @classmethod
    def for_stream(cls, stream: TextIO, environment: Mapping[str, str] = os.environ) -> Ink:
        """Decide by NO_COLOR first, then FORCE_COLOR, then by whether the stream is a terminal."""
        if environment.get("NO_COLOR"):
            return cls(wet=False)
        if environment.get("FORCE_COLOR", "0") != "0":
            return cls(wet=True)
        return cls(wet=stream.isatty() and environment.get("TERM") != "dumb")

    def __call__(self, text: str, *styles: str) -> str:
        """Return the text in the given styles."""
        if not self.wet or not styles:
            return text
        return f"\x1b[{';'.join(str(_CODES[style]) for style in styles)}m{text}\x1b[0m"


def replace_missing_streams() -> None:
    """Put a stream that says nothing in the place of each one that this process was started without.

    Its number is taken too, lowest first, so that no file of a store is opened where messages go.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 (for good)


def let_go_of_broken_streams() -> None:
    """Drop what stdout and stderr do not take: Python would try again at its end, and fail aloud."""
    for stream in (sys.stdout, sys.stderr):
        if stream.closed:
            continue
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def show(text: str) -> None:
    """Write text to stdout."""
    _write(sys.stdout, text)


def show_data(data: object) -> None:
    """Write data to stdout as one JSON document."""
    _write_json(sys.stdout, json_text(data, indent=2))


def answer(text: str, data: object, *, as_json: bool) -> None:
    """Write what a command has to say to stdout: text for people, or data for programs."""
    if as_json:
        show_data(data)
    else:
        show(text)


def show_row(data: object) -> None:
    """Write data to stdout as one line of JSON."""
    _write_json(sys.stdout, json_text(data))


def show_encoded(data: bytes) -> None:
    """Write what is JSON already, on a line, without anything that a terminal would obey."""
    _write_json(sys.stdout, _harmless(data.decode().removesuffix("\n")))


def show_bytes(data: bytes) -> None:
    """Write what is JSON already, byte for byte; only a terminal gets escapes for what it would obey."""
    if sys.stdout.isatty():
        show_encoded(data)
        return
    flush()
    with arriving():
        sys.stdout.buffer.write(data)


def show_line(data: object) -> None:
    """Write data to stdout as one line of JSON, and let the reader have it at once."""
    show_row(data)
    flush()


def tell(text: str) -> None:
    """Write a message to stderr; one that cannot be written is lost, and the command does what it does."""
    _tell(_write, text)


def _tell(write: Callable[[TextIO, str], None], text: str) -> None:
    try:
        write(sys.stderr, text)
    except (OutputLost, ReaderGone):
        return


def tell_error(error: TallyError, *, as_json: bool) -> int:
    """Write an error to stderr, with all its fields where a program reads, and return its exit code."""
    complain(error.message, error.as_dict(), as_json=as_json)
    return error.exit_code


def complain(message: str, data: Mapping[str, object], *, as_json: bool) -> None:
    """Write one complaint to stderr: a line for people or a line of JSON for programs."""
    if as_json:
        _tell(_write_json, json_text({"error": dict(data)}))
    else:
        # psycopg indents by tabs; a tab moves the cursor, and spaces say the same.
        lines = "\n".join(map(printable, message.expandtabs(2).split("\n")))
        tell(f"{Ink.for_stream(sys.stderr)('error:', 'bold', 'red')} {lines}")


def printable(text: str) -> str:
    """Return text that moves no cursor and paints nothing: what is not visible is written as an escape.

    What is stored was written by others, and a terminal obeys what it prints.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def json_text(data: object, indent: int | None = None) -> str:
    """Return data as JSON that is safe to print: on one line, or with an indent."""
    # Here and not above: most calls never need it, and it takes almost as long as the start of Python.
    import json

    return _harmless(json.dumps(data, ensure_ascii=False, indent=indent, default=str))


def _harmless(text: str) -> str:
    import re

    # JSON lets some characters pass that a terminal obeys: the second set of controls, and those that turn
    # the direction of the text. Half a character is no text in any encoding.
    return re.sub(_OBEYED, _escaped, text)


def _escaped(match: Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _write(stream: TextIO, text: str) -> None:
    """Write text for people: a terminal that cannot show an arrow still tells which character it was."""
    if not _fits(stream, text):
        text = text.encode(stream.encoding, "backslashreplace").decode(stream.encoding)
    _put(stream, text)


def _write_json(stream: TextIO, text: str) -> None:
    """Write JSON, whose own escapes say everything in ASCII where the stream has no more than that."""
    if not _fits(stream, text):
        import re

        text = re.sub("[^\x00-\x7f]+", _escaped, text)
    _put(stream, text)


def _fits(stream: TextIO, text: str) -> bool:
    """Tell whether a stream has all these characters; what it would put in their place does not count."""
    if text.isascii():
        return True
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _put(stream: TextIO, text: str) -> None:
    with arriving():
        stream.write(f"{text}\n")


def flush() -> None:
    """Let the reader have everything that was written to stdout."""
    with arriving():
        sys.stdout.flush()


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, with their columns one below the other."""
    told = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*told, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in told]
