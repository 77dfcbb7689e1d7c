"""The entry point: which subcommand, and what becomes of its errors."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Final

from kettle_services.cli.commands import COMMANDS, GROUPS, MEANT, module_of
from kettle_services.cli.errors import CommandError, OutputError, UsageError
from kettle_services.cli.output.screen import Screen, columns, writing
from kettle_services.cli.times import TimeParser

_HEAD = """\
usage: kettle COMMAND [ARGUMENTS]

Kettle runs as much work as possible on as many machines as possible.
"""
_TAIL = """
first steps:
  kettle up                      start a pool on this machine
  kettle submit job.sub          send it jobs
  kettle wait 1                  wait for cluster 1
  kettle why 1.0                 ask why a job does not run
  kettle down                    stop the pool; nothing is lost

Each command explains itself: kettle COMMAND --help
"""
_NOT_WRITTEN: Final = 2
_PIPE_CLOSED: Final = 128 + 13  # what a shell calls the end by SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command.

    The exit status is 0 for done, 1 for refused or failed, 2 for a mistake in what was typed or an output that cannot
    be written, 141 if the reader went away before the end.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it stays open to the end
    if sys.stdout is None:
        sys.stderr.write("kettle: cannot write: there is no standard output\n")
        return _NOT_WRITTEN
    status = _PIPE_CLOSED
    try:
        try:
            status = _dispatch(words)
        finally:
            with writing():
                sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has closed it; the result of the command is valid nevertheless.
        _abandon_output()
    except OutputError as error:
        with suppress(OSError):  # standard error may be what cannot be written
            sys.stderr.write(f"kettle: {error}\n")
        _abandon_output()
        return _NOT_WRITTEN
    return status


def _abandon_output() -> None:
    """Python must not try to write what is left once more at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in {"-h", "--help", "help"}:
        if len(words) > 1 and words[1] in COMMANDS:
            words = [words[1], "--help"]
        else:
            with writing():
                sys.stdout.write(_overview() + "\n")
            return 0 if words else 2
    name, rest = ("version" if words[0] == "--version" else words[0]), words[1:]
    if name not in COMMANDS:
        from kettle.terminal.nearest_names import nearest

        word = name.lower()
        close = word if word in MEANT else nearest(word, COMMANDS) or nearest(word, MEANT)
        hint = f"did you mean kettle {MEANT.get(close, close)}?" if close else "see kettle --help"
        with writing():
            sys.stderr.write(f"kettle: there is no command '{name}'; {hint}\n")
        return 2
    return _run(name, rest)


class _Help(argparse.RawDescriptionHelpFormatter):
    """
    One is made for each argument that is declared, so it does not find out every time how wide the terminal is.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())


@lru_cache(maxsize=1)
def _width() -> int:
    return columns() - 2  # what argparse leaves


def _overview() -> str:
    lines = [_HEAD]
    for group, commands in GROUPS.items():
        lines += [f"{group}:", *(f"  {name:<9} {says}" for name, says in commands.items()), ""]
    return "\n".join(lines).rstrip("\n") + "\n" + _TAIL.rstrip("\n")


def _run(name: str, words: list[str]) -> int:
    module = importlib.import_module(module_of(name))
    parser = TimeParser(
        prog=f"kettle {name}",
        description=module.HELP,
        formatter_class=_Help,
    )
    module.arguments(parser)
    with writing():
        arguments = parser.parse_args(words)
    screen = Screen(as_json=getattr(arguments, "json", False))
    return _guarded(module, arguments, screen, name)


def _guarded(module: ModuleType, arguments: argparse.Namespace, screen: Screen, name: str) -> int:
    try:
        return int(module.run(arguments, screen))
    except UsageError as error:
        screen.trouble(f"kettle {name}: {error}")
        return 2
    except CommandError as error:
        screen.trouble(f"kettle {name}: {error}")
    except _client_error() as error:
        screen.trouble(f"kettle {name}: {error}{_hint(name, error)}")
    except UnicodeEncodeError as error:
        screen.trouble(
            f"kettle {name}: {error.object!r} cannot be printed: it is not text in {error.encoding}"
        )
    return 1


def _client_error() -> type[Exception]:
    """
    What the client raises; who has no error does not look, so a command that needs no pool loads no client.
    """
    from kettle.client import ClientError

    return ClientError


def _hint(name: str, error: Exception) -> str:
    from kettle.client import PoolUnreachableError

    if not isinstance(error, PoolUnreachableError):
        return ""
    return f"; {'start it with: kettle up' if name == 'status' else 'see what runs with: kettle status'}"


if __name__ == "__main__":
    sys.exit(main())
