"""The one place where exceptions become exit codes and one line on stderr."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import click

from mainspring.cli.output import printable
from mainspring.errors import AnswerLost, MainspringError, StoreUnavailable, UsageError, shown
from mainspring.tasks.checks import is_text

FAILED, USAGE, UNREACHABLE = 1, 2, 3
# Raised by click 8.2 and newer for a group without a command; older ones print and exit 0.
_HELP_ASKED_FOR: type[click.ClickException] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())


class UserCodeFailed(Exception):
    """The user's own module raised; `report` is its traceback, without our frames."""

    def __init__(self, report: str) -> None:
        super().__init__(report)
        self.report = report


class ExitingGroup(click.Group):
    """A group whose mistakes end in an exit code, never in our traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run one command line and exit."""
        extra["standalone_mode"] = False
        sys.exit(exit_code(lambda: super(ExitingGroup, self).main(*args, **extra)))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse bytes that are no UTF-8 before a command takes them for text, as stores and terminals do.
        NUL is each field's own to refuse: no argument of a real process has it."""
        for place, word in enumerate(args, 1):
            if not is_text(word.replace("\0", "")):
                raise click.UsageError(f"argument {place}: expected text in UTF-8, got {shown(word)}", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and hand over its last line, for a reader who left says so only then."""
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whatever is still buffered would raise once more while Python shuts down.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(by_signal(signal.SIGPIPE))


def exit_code(command: Callable[[], object]) -> int:
    """Run it; answer what the process should say about it."""
    try:
        code = command()
    except click.Abort:
        return by_signal(signal.SIGINT)
    except click.ClickException as error:
        if isinstance(error, _HELP_ASKED_FOR):
            error.show()  # a page of help is no message, and stays a page
            return error.exit_code
        _say(error.format_message())
        return error.exit_code
    except UserCodeFailed as error:
        click.echo(error.report, err=True)
        return USAGE
    except MainspringError as error:
        _say(str(error))
        return code_of(error)
    return code if isinstance(code, int) else 0


def code_of(error: MainspringError) -> int:
    """2: fix the call; 3: the store cannot be reached; 1: everything else."""
    match error:
        case UsageError():
            return USAGE
        case StoreUnavailable() | AnswerLost():
            return UNREACHABLE
        case _:
            return FAILED


def by_signal(number: int) -> int:
    """What a shell says of a process that a signal ended."""
    return 128 + number


def _say(message: str) -> None:
    click.echo(f"Error: {printable(' '.join(message.split()))}", err=True)
