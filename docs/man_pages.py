#!/usr/bin/env python3
"""
Writes a manual page for each command of `kettle` and each condor_* command, as the commands declare themselves.

    .venv/bin/python docs/man_pages.py build/man/man1

They are not committed: a package writes them when it is built.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, cast

from kettle import VERSION
from kettle_services.cli.commands import COMMANDS, GROUPS, module_of
from kettle_services.condor.start import COMMANDS as CONDOR

_OPTION: Final = re.compile(r"  (-.+?)(?: {2,}(\S.*))?")
"""A line of a condor_* command's help that begins with an option; behind two blanks stands what it means."""


def pages() -> Iterator[tuple[str, str]]:
    """The name of each page's file, and its text."""
    yield "kettle.1", _overview()
    for name, says in COMMANDS.items():
        yield f"kettle-{name}.1", "\n".join(_kettle(name, says)) + "\n"
    for name, (module, says) in CONDOR.items():
        said = importlib.import_module(f"kettle_services.condor.commands.{module}").HELP[name]
        yield f"{name}.1", "\n".join(_condor(name, says, said)) + "\n"


# -- in the language of manual pages --------------------------------------------------------------------------------------


def _text(text: str) -> str:
    """As it is: no hyphenation, and nothing at the beginning of a line that would be a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def _head(name: str, says: str) -> list[str]:
    return [
        f'.TH "{_text(name.upper())}" 1 "" "Kettle {_text(VERSION)}" "Kettle"',
        ".SH NAME",
        f"{_text(name)} \\- {_text(says)}",
    ]


def _prose(lines: Sequence[str]) -> Iterator[str]:
    """Paragraphs; what is indented, and what stands behind a title such as `examples:`, keeps its lines."""
    whole = False
    for line in lines:
        wanted = line.startswith(" ")
        if wanted != whole:
            yield ".nf" if wanted else ".fi"
            whole = wanted
        yield _text(line) if line.strip() else ".PP"
    if whole:
        yield ".fi"


def _entry(option: str, says: str) -> list[str]:
    return [".TP", f"\\fB{_text(option)}\\fR", _text(says) or "\\&"]


# -- the commands of kettle ------------------------------------------------------------------------------------------------


def _overview() -> str:
    lines = [
        *_head("kettle", "high-throughput computing"),
        ".SH SYNOPSIS",
        "\\fBkettle\\fR COMMAND [ARGUMENTS]",
    ]
    for group, commands in GROUPS.items():
        lines.append(f".SH {_text(group.upper())}")
        for name, says in commands.items():
            lines += _entry(f"kettle {name}", f"{says}; see kettle-{name}(1)")
    return "\n".join(lines) + "\n"


def _kettle(name: str, says: str) -> Iterator[str]:
    module = importlib.import_module(module_of(name))
    parser = argparse.ArgumentParser(prog=f"kettle {name}", description=module.HELP, add_help=False)
    module.arguments(parser)
    yield from _head(f"kettle-{name}", says)
    yield ".SH SYNOPSIS"
    yield _text(_usage(parser))
    yield from _described(parser)


def _described(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield ".SH DESCRIPTION"
    yield from _prose((parser.description or "").strip().splitlines())
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001 - there is no public list
    inner = [command for action in actions for command in _within(action)]
    if rest := [action for action in actions if action.dest != "help" and not _within(action)]:
        yield ".SH ARGUMENTS"
    for action in rest:
        yield from _entry(_spelling(action), " ".join((action.help or "").replace("%%", "%").split()))
    for command in inner:
        yield f".SH {_text(command.prog.upper())}"
        yield _text(_usage(command))
        yield from (line.replace(".SH", ".SS", 1) for line in _described(command))


def _usage(parser: argparse.ArgumentParser) -> str:
    return " ".join(parser.format_usage().removeprefix("usage: ").split())


def _within(action: argparse.Action) -> list[argparse.ArgumentParser]:
    choices = action.choices
    found = [*cast("dict[str, object]", choices).values()] if isinstance(choices, dict) else []
    return [parser for parser in found if isinstance(parser, argparse.ArgumentParser)]


def _spelling(action: argparse.Action) -> str:
    metavar = action.metavar or action.dest.upper()
    takes = "" if action.nargs == 0 else metavar if isinstance(metavar, str) else " ".join(metavar)
    return ", ".join(f"{option} {takes}".strip() for option in action.option_strings) or takes


# -- the condor_* commands -------------------------------------------------------------------------------------------------


def _condor(name: str, says: str, said: str) -> Iterator[str]:
    """Its help: how it is typed, then prose, and options with what they mean."""
    lines = said.rstrip().splitlines()
    usage = [line for line in lines if line.startswith(("usage: ", "       "))][: _usages(lines)]
    yield from _head(name, says)
    yield ".SH SYNOPSIS"
    for line in usage:
        yield _text(line.removeprefix("usage:").strip())
        yield ".br"
    yield ".SH DESCRIPTION"
    below = False
    prose: list[str] = []
    for line in lines[len(usage) :]:
        if match := _OPTION.fullmatch(line):
            yield from _prose(prose)
            prose.clear()
            below = True
            yield from _entry(match[1], match[2] or "")
        elif below and line.startswith("   "):
            yield _text(line.strip())
        else:
            if below:
                yield ".PP"
            below = False
            prose.append(line)
    yield from _prose(prose)


def _usages(lines: Sequence[str]) -> int:
    """How many lines at the beginning say how it is typed."""
    return next((at for at, line in enumerate(lines) if not line.strip()), len(lines))


def main(words: Sequence[str]) -> int:
    """Write them into a directory."""
    if len(words) != 1:
        sys.stderr.write("usage: man_pages.py DIRECTORY\n")
        return 2
    directory = Path(words[0])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (directory / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
