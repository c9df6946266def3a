"""The group of all subcommands, and how click's complaints become ours.

A subcommand is `command` in the module of its name, in a room below `commands`. It is imported when it
is called, never for the help of the others. A new one is a module and a line in `COMMANDS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

import click

from tallystick import __version__
from tallystick.cli.render.output import BAD_USAGE, INTERRUPTED, arriving, complain, tell

COMMANDS: Final = {
    "submit": "make a job of a workflow and its arguments",
    "command": "make a job of a command for remote workers",
    "work": "run jobs until told to stop",
    "list": "show jobs, newest first",
    "show": "show one job: where it stands, what it got and gave",
    "why": "say why a job stands where it stands, and what to do about it",
    "history": "tell what happened to a job, fact by fact",
    "send": "send a signal to a job",
    "cancel": "ask a job to end",
    "pause": "hold a job until it is resumed",
    "resume": "let a held job go on",
    "resolve": "say what came of an effect that is in doubt",
    "fork": "make a new job from what another has recorded before a step",
    "dead": "show jobs that have failed and were not retried",
    "retry": "make a new job in the place of one that has failed",
    "top": "watch a store at work: queues, workers, slow and stuck jobs",
    "workers": "show the workers of a store",
    "health": "say by the exit code whether a worker lives",
    "metrics": "print the series of a store for Prometheus",
    "outbox": "show what goes to remote workers, and redrive what is dead",
    "schedules": "show and change what becomes a job by the clock",
    "queues": "show and change the limits of queues, and pause them",
    "prune": "remove the books of jobs that ended long ago",
    "backup": "copy a SQLite file that is in use",
    "restored": "hold what is unfinished in a store that was restored from a copy",
    "doctor": "examine a store and check its books",
    "verify": "recompute all books and say whether they are true",
    "seal": "note the end of every history, to be kept elsewhere",
    "ledger": "draw fifteen digits with their meaning and say what happens next",
    "machines": "show the lifecycles that every row follows",
    "serve": "answer over HTTP: commands, jobs, remote workers",
    "keys": "make, list and revoke the keys of the HTTP API",
    "stage": "add up the journal of a stage",
    "run": "run pipelines whose folder is the truth",
    "telemetry": "serve the local book of runs",
}

_ROOMS: Final = {
    **dict.fromkeys(("doctor", "verify", "seal", "prune", "backup"), "books"),
    **dict.fromkeys(("restored", "ledger", "machines"), "books"),
    **dict.fromkeys(("stage", "run", "telemetry"), "runs"),
    **dict.fromkeys(("work", "schedules", "queues", "workers", "top"), "work"),
    **dict.fromkeys(("health", "metrics", "outbox"), "work"),
    **dict.fromkeys(("serve", "keys"), "http"),
}


def home_of(name: str) -> str:
    """Return the module in which a command lives; what is about jobs needs no line in the table of rooms."""
    return f"tallystick.cli.commands.{_ROOMS.get(name, 'jobs')}.{name.replace('-', '_')}"


class LazyGroup(click.Group):
    """A group that knows the names of its commands and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (the signature is click's)
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (the signature is click's)
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(home_of(cmd_name)).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was meant, and guess aloud when there is none of that name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 (the signature is click's)
    ) -> click.Context:
        """Parse, which may print help."""
        with _said_by_us():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (the signature is click's)
        """Run a command."""
        with _said_by_us():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (the signature is click's)
        """Write the list of commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


class ListingGroup(click.Group):
    """A group that shows its list if none of its commands is named: `tally queues shop`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` in front of what names a store, or nothing."""
        word, *others = args or [""]
        is_alone = not others or "-" in (word[:1], others[0][:1])
        if is_alone and word not in self.commands and word not in ctx.help_option_names:
            args = ["list", *args]
        return super().parse_args(ctx, args)


@contextmanager
def _said_by_us() -> Iterator[None]:
    """Name an output that does not arrive as we do; click would leave with an exit code of its own.

    It prints help by itself, and only what fails there is about the output.
    """
    try:
        yield
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and not _raised_in(error, "click.utils"):
            raise
        with arriving():
            raise


def _raised_in(error: BaseException, module: str) -> bool:
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") == module


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tally")
def tally() -> None:
    """Durable execution for Python that keeps books."""


def run(given: list[str]) -> int:
    """Let click parse and run a command; return the exit code."""
    try:
        code = tally.main(given, prog_name="tally", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        tell(error.format_message())
        return BAD_USAGE
    except click.UsageError as error:
        _complain_of_usage(error, as_json="--json" in given)
        return BAD_USAGE
    except click.ClickException as error:
        complain(error.format_message(), {"message": error.format_message()}, as_json="--json" in given)
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _complain_of_usage(error: click.UsageError, *, as_json: bool) -> None:
    message = error.format_message()
    place = error.ctx.command_path if error.ctx else "tally"
    complain(message, {"code": "BAD_USAGE", "message": message}, as_json=as_json)
    if not as_json:
        tell(f"  see: {place} --help")
