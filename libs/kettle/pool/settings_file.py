"""
Settings that a command adds to a `kettle.toml` that is somebody else's: what is there stays, comments and all.
"""

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from kettle.auth.private_files import write_private
from kettle.pool.personal_settings import Tables, Value, toml_value

_HEADER: Final = re.compile(r"^\s*\[\s*([A-Za-z0-9_-]+)\s*\]\s*(#.*)?$")


class SettingsFileError(Exception):
    """The file cannot be used as it is; the message is a sentence that names it."""


def merged(
    path: Path,
    text: str,
    wanted: Tables,
    ours: Mapping[str, Mapping[str, Any]],
    *,
    theirs: Collection[str] = (),
) -> tuple[str, dict[str, dict[str, Any]]]:
    """
    The text with the settings that it lacks, and those that were added; `ours` are those that were added earlier, `theirs` the
    names of settings that may have other values than are wanted.

    Raises:
        SettingsFileError: it cannot be read, or says something else that is not ours.
    """
    text = without(text, ours)
    try:
        there = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsFileError(f"{path} is no TOML: {error}") from error
    added: dict[str, dict[str, Any]] = {}
    for table, values in wanted.items():
        given = there.get(table, {})
        for name, value in values.items():
            if name not in given:
                added.setdefault(table, {})[name] = value
            elif given[name] != value and name not in theirs:
                raise SettingsFileError(
                    f"{path}: {name} of [{table}] is {toml_value(given[name])}, and what is wanted is {toml_value(value)}: remove it"
                )
    for table, values in added.items():
        text = _with(text, table, values)
    return text, added


def add(path: Path, wanted: Tables) -> None:
    """
    Have a file say these settings, too.

    Raises:
        SettingsFileError: it cannot be read or written, or says something else.
    """
    try:
        text, added = merged(path, path.read_text(encoding="utf-8"), wanted, {})
        if added:
            write_private(path, text)
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", "") or str(error)
        raise SettingsFileError(f"{path} cannot be used: {said}") from error


def _with(text: str, table: str, values: Mapping[str, Value]) -> str:
    new = [f"{name} = {toml_value(value)}" for name, value in values.items()]
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if (found := _HEADER.match(line)) and found[1] == table:
            lines[number + 1 : number + 1] = new
            return "\n".join(lines) + "\n"
    return "\n".join([*lines, "", f"[{table}]", *new]) + "\n"


def without(text: str, settings: Mapping[str, Mapping[str, Any]]) -> str:
    """
    The text without these lines, as far as they are as they were written, and without tables that are empty then.
    """
    ours = {
        table: {f"{name} = {toml_value(value)}" for name, value in values.items()}
        for table, values in settings.items()
    }
    kept: list[str] = []
    table = ""
    for line in text.splitlines():
        if found := _HEADER.match(line):
            table = found[1]
        if line not in ours.get(table, ()):
            kept.append(line)
    whole: list[str] = []
    for number, line in enumerate(kept):
        found = _HEADER.match(line)
        rest = [each for each in kept[number + 1 :] if each.strip()]
        if found and found[1] in ours and (not rest or rest[0].lstrip().startswith("[")):
            while whole and not whole[-1].strip():
                whole.pop()
            continue
        whole.append(line)
    return "\n".join(whole) + "\n" if whole else ""
