"""
Makes `docs/reference/commands.md` and `docs/reference/condor-commands.md`: every command, as it says of itself.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

import argparse
import importlib
from collections.abc import Iterator
from typing import Final, cast

from kettle.schema_generation.markdown import one_line, table
from kettle_services.cli.commands import GROUPS, module_of
from kettle_services.condor.start import COMMANDS as CONDOR


def commands_page() -> str:
    """Every subcommand with its arguments."""
    parts = ["# Commands\n", _COMMANDS_HEAD]
    for group, commands in GROUPS.items():
        parts.append(f"## {group[0].upper()}{group[1:]}\n")
        for name, says in commands.items():
            parts.append(f"### `kettle {name}`: {says}\n")
            parts.append(_command(name))
    return "\n".join(parts)


def _command(name: str) -> str:
    module = importlib.import_module(module_of(name))
    parser = argparse.ArgumentParser(prog=f"kettle {name}", description=module.HELP, add_help=False)
    module.arguments(parser)
    return "\n".join(_described(parser))


def _described(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A command with its arguments, then the commands within it."""
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001 - there is no public list
    inner = [command for action in actions for command in _within(action)]
    rows = [
        (_spelling(action), one_line(action.help or "").replace("%%", "%"))
        for action in actions
        if action.dest != "help" and not _within(action)
    ]
    yield f"```text\n{(parser.description or '').strip()}\n```\n"
    if rows:
        yield table(("argument", "meaning"), rows)
    for command in inner:
        yield f"#### `{command.prog}`\n"
        yield from _described(command)


def _within(action: argparse.Action) -> list[argparse.ArgumentParser]:
    choices = action.choices
    found: list[object] = [*cast("dict[str, object]", choices).values()] if isinstance(choices, dict) else []
    return [parser for parser in found if isinstance(parser, argparse.ArgumentParser)]


def _spelling(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        repeated = action.nargs in {"*", "+"}
        return f"`{metavar}{' ...' if repeated else ''}`"
    takes = "" if action.nargs == 0 else f" {metavar}"
    return ", ".join(f"`{option}{takes}`" for option in action.option_strings)


def condor_page() -> str:
    """The commands of HTCondor, with what each says of itself."""
    parts = ["# Commands of HTCondor\n", _CONDOR_HEAD]
    parts.append(
        table(("command", "what it is for"), [(f"`{name}`", says) for name, (_, says) in CONDOR.items()])
    )
    for name, (module, _) in CONDOR.items():
        said = importlib.import_module(f"kettle_services.condor.commands.{module}").HELP[name]
        parts.append(f"## `{name}`\n\n```text\n{said.rstrip()}\n```\n")
    return "\n".join(parts)


_CONDOR_HEAD: Final = """\
`condor_... -help` says the same as this page; [coming from HTCondor](../how-to/come-from-htcondor.md) tells how to get these commands.

After one dash an option may be shortened as long as no other one is meant; after two it is written out.
The exit status is 0 for done, and for a query that finds nothing; 1 for refused, failed, and a mistake in what was typed.
"""

_COMMANDS_HEAD: Final = """\
`kettle COMMAND --help` says the same as this page.

Tables and colours are for terminals; `--json` prints JSON, for programs.
Colours follow `NO_COLOR` and `KETTLE_COLOR`.
The exit status is 0 for done, 1 for refused or failed, 2 for a mistake in what was typed.

The pool is the one in `--home`, else the one that `KETTLE_NATS_URL` names, else the one in `$KETTLE_HOME` (default `~/.kettle`).
"""
