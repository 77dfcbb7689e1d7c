"""What can be wrong with settings, and where: all that a refusal has to say to the person who wrote them."""

import re
import tomllib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from kettle.runtime.toml_lines import TomlLines

_PLACE: Final = re.compile(r" \(at line (\d+), (column \d+)\)$")
_MOST: Final = 20
"""More problems than a person reads at once are counted."""


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, or that only looks so (`warning`)."""

    where: str
    """A variable, or a file with line, table and name."""
    sentence: str
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.sentence}"


class SettingsError(Exception):
    """
    The settings cannot be used; the message has a sentence for each thing that is wrong, in lines of their own.
    """

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> "SettingsError":
        """What is said of all these together."""
        lines = [str(each) for each in problems[:_MOST]]
        if len(problems) > _MOST:
            lines.append(f"and {len(problems) - _MOST} more; see all with: kettle config check")
        return cls("\n".join(lines), problems)


class SettingRefused(ValueError):  # noqa: N818 - what is refused is the setting
    """
    A value has the right type and makes no sense: `keys` lead to it from its service's table, the message says what is wrong.
    """

    def __init__(self, keys: Sequence[str], message: str) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


class SettingsFile:
    """A TOML file of settings, read once."""

    def __init__(self, path: Path, text: str) -> None:
        """
        Raises:
            SettingsError: it is no TOML.
        """
        self.path: Final = path
        self._text = text
        try:
            self.tables: Final = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SettingsError.of([_broken(path, text, str(error))]) from error

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """
        Raises:
            SettingsError: it cannot be read, or is no TOML.
        """
        try:
            return cls(path, path.read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingsError.of(
                [Problem(str(path), f"cannot read the settings: {error.strerror}.")]
            ) from error
        except UnicodeDecodeError as error:
            raise SettingsError.of([Problem(str(path), f"is no text in UTF-8: {error.reason}.")]) from error

    @cached_property
    def _lines(self) -> TomlLines:
        return TomlLines(self._text)

    def place(self, keys: Sequence[str]) -> str:
        """The file, with the line of a setting or of what is nearest to it."""
        line = self._lines.line_of(keys)
        return f"{self.path}:{line}" if line else str(self.path)

    def line_of(self, keys: Sequence[str], entry: str = "") -> int | None:
        """The line of a setting, or of one text in its list; None if it is not there."""
        found = self._lines.lines_of(keys)
        if found is None or not entry:
            return None if found is None else found.start
        lines = self._text.splitlines()[found.start - 1 : found.stop - 1]
        at = (
            at for at, text in enumerate(lines, found.start) if f'"{entry}"' in text or f"'{entry}'" in text
        )
        return next(at, None)

    def where(self, table: str, *names: str) -> str:
        """The place of a setting, as a refusal names it."""
        return f"{self.place((table, *names))}: [{table}] {'.'.join(names)}"


def _broken(path: Path, text: str, said: str) -> Problem:
    """The sentence of the reader of TOML, with its place in front."""
    if found := _PLACE.search(said):
        return Problem(f"{path}:{found[1]}", f"{said[: found.start()]}, {found[2]}.")
    sentence, at_end, _ = said.partition(" (at end of document)")
    line = len(text.rstrip().splitlines()) or 1
    return (
        Problem(f"{path}:{line}", f"{sentence}, at the end of the file.")
        if at_end
        else Problem(str(path), f"{said}.")
    )
