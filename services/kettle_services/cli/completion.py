"""
What shells complete: commands, their subcommands and options, as the parsers of the commands declare them.

The scripts are whole: to complete a word a shell starts no program.
"""

import argparse
import importlib
from collections.abc import Iterator
from typing import Final, cast

import msgspec

from kettle_services.cli.commands import COMMANDS, module_of
from kettle_services.cli.times import TimeParser


class Choices(msgspec.Struct, frozen=True):
    """What may follow some words, such as `flock pass`."""

    words: tuple[str, ...]
    offers: tuple[tuple[str, str], ...]
    """Subcommands, values and options, each with what it means."""


def choices() -> list[Choices]:
    """All of them; this loads every command."""
    found = [Choices((), tuple(COMMANDS.items()))]
    for name in COMMANDS:
        module = importlib.import_module(module_of(name))
        parser = TimeParser(prog=f"kettle {name}", add_help=False)
        module.arguments(parser)
        found += _of((name,), parser)
    return found


def _of(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[Choices]:
    offers: list[tuple[str, str]] = [("--help", "what it does")]
    for action in parser._actions:  # noqa: SLF001 - there is no public list
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action.choices, dict):
            inner = cast("dict[str, argparse.ArgumentParser]", action.choices)
            listed = cast("list[argparse.Action]", getattr(action, "_choices_actions", []))
            helps = {each.dest: each.help or "" for each in listed}
            for name, below in inner.items():
                offers.append((name, helps.get(name, "")))
                yield from _of((*words, name), below)
        elif action.option_strings:
            offers += [
                (option, action.help or "") for option in action.option_strings if option.startswith("--")
            ]
        elif action.choices is not None:
            offers += [(str(choice), "") for choice in action.choices]
    yield Choices(words, tuple(offers))


def bash(found: list[Choices]) -> str:
    """For bash."""
    cases = "\n".join(
        f"    '{' '.join(each.words)}') offers='{' '.join(word for word, _ in each.offers)}' ;;"
        for each in found
    )
    return _BASH.format(cases=cases)


def zsh(found: list[Choices]) -> str:
    """For zsh, which shows what each means."""
    cases = "\n".join(
        f"    {_quoted(' '.join(each.words))}) offers=({' '.join(_quoted(f'{_escaped(word)}:{_line(says)}') for word, says in each.offers)}) ;;"
        for each in found
    )
    return _ZSH.format(cases=cases)


def fish(found: list[Choices]) -> str:
    """For fish, which shows what each means."""
    lines = ["complete -c kettle -e"]
    for each in found:
        where = f"__kettle_at {' '.join(each.words)}".rstrip()
        for word, says in each.offers:
            offer = f"-l {word[2:]}" if word.startswith("--") else f"-f -a {_quoted(word)}"
            lines.append(f"complete -c kettle -n {_quoted(where)} {offer} -d {_quoted(_line(says))}")
    return _FISH + "\n".join(lines) + "\n"


SHELLS: Final = {"bash": bash, "zsh": zsh, "fish": fish}


def _line(text: str) -> str:
    return " ".join(text.replace("%%", "%").split())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _escaped(word: str) -> str:
    return word.replace(":", "\\:")


_BASH: Final = """\
# kettle completion bash
_kettle() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} place='' offers='' each i
  for ((i = 1; i < COMP_CWORD; i++)); do
    each=${{COMP_WORDS[i]}}
    [[ $each == -* ]] && continue
    if _kettle_offers "${{place:+$place }}$each"; then place="${{place:+$place }}$each"; fi
  done
  _kettle_offers "$place"
  COMPREPLY=($(compgen -W "$offers" -- "$word"))
}}
_kettle_offers() {{
  case "$1" in
{cases}
    *) return 1 ;;
  esac
}}
complete -o default -F _kettle kettle
"""

_ZSH: Final = """\
#compdef kettle
# kettle completion zsh
_kettle() {{
  local place='' each
  local -a offers
  for each in ${{words[2,CURRENT-1]}}; do
    [[ $each == -* ]] && continue
    if _kettle_offers "${{place:+$place }}$each"; then place="${{place:+$place }}$each"; fi
  done
  _kettle_offers "$place"
  _describe 'kettle' offers || _files
}}
_kettle_offers() {{
  case "$1" in
{cases}
    *) return 1 ;;
  esac
}}
if [[ $funcstack[1] == _kettle ]]; then _kettle "$@"; else compdef _kettle kettle; fi
"""

_FISH: Final = """\
# kettle completion fish
function __kettle_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l plain
    for each in $words
        string match -q -- '-*' $each; or set -a plain $each
    end
    if test (count $argv) -eq 0
        test (count $plain) -eq 0
        return
    end
    set -l most (count $argv)
    test (count $plain) -ge $most; and test "$plain[1..$most]" = "$argv"
end
"""
