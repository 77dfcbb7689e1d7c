"""
The files in which a site says who is who: map files, and a rules file. They are read here, and understood in
`kettle.auth.mapping`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import msgspec

from kettle.auth.mapping import map_file, rules_file
from kettle.auth.mapping.findings import Finding, Place, refusals
from kettle.auth.mapping.map_file import MapFile
from kettle.auth.mapping.rules_file import RulesFile
from kettle.runtime.authorization import Authorization
from kettle.runtime.settings_problems import SettingsError, SettingsFile

_MOST_BYTES: Final = 16 * 1024 * 1024
_IGNORED: Final = (".", "#")
_IGNORED_ENDS: Final = ("~", ".rpmsave", ".rpmnew", ".dpkg-old", ".dpkg-dist")
"""Files in an included directory that editors and package managers leave there."""


class AccessFiles(msgspec.Struct, frozen=True):
    """What the files say."""

    maps: tuple[MapFile, ...] = ()
    rules: RulesFile = RulesFile()


def named(said: Authorization, settings: Path | None) -> tuple[list[Path], Path | None]:
    """
    The map files and the rules file that settings name, whose relative names begin at the directory of the settings.
    """
    base = settings.parent if settings else Path()
    return [base / each for each in said.map_files], base / said.rules if said.rules else None


class FilesInForce:
    """The files of a site, as they were when they could be used last."""

    def __init__(self, maps: Sequence[Path], rules: Path | None) -> None:
        self._maps = tuple(maps)
        self._rules = rules
        self.current = AccessFiles()

    def read(self) -> list[Finding]:
        """
        Read the files again, and use them unless something in them is refused; returns all that is wrong with them.
        """
        found, findings = read(self._maps, self._rules)
        if not refusals(findings):
            self.current = found
        return findings


def read(maps: Sequence[Path], rules: Path | None) -> tuple[AccessFiles, list[Finding]]:
    """What these files say, and what is wrong with them; to be used only if nothing is refused."""
    findings: list[Finding] = []
    found: list[MapFile] = []
    for path in maps:
        try:
            made, wrong = map_file.read(str(path), _text(path), _included)
        except (OSError, UnicodeDecodeError) as error:
            findings.append(Finding(Place(str(path)), f"cannot be read: {_why(error)}."))
        else:
            found.append(made)
            findings += wrong
    book = RulesFile()
    if rules is not None:
        book, wrong = _rules(rules)
        findings += wrong
    return AccessFiles(tuple(found), book), findings


def _rules(path: Path) -> tuple[RulesFile, list[Finding]]:
    try:
        file = SettingsFile.read(path)
    except SettingsError as error:
        return RulesFile(), [Finding(Place(each.where), each.sentence) for each in error.problems]

    def place(keys: Sequence[str]) -> Place:
        name, _, line = file.place(keys).rpartition(":")
        return Place(name, int(line)) if name and line.isdecimal() else Place(str(path))

    return rules_file.read(cast("Mapping[str, object]", file.tables), place)


def _included(file: str, name: str) -> Sequence[tuple[str, str]]:
    """The files of an `@include`: one, or those of a directory in the order of their names."""
    path = Path(file).parent / name
    if not path.is_dir():
        return [(str(path), _text(path))]
    return [
        (str(each), _text(each))
        for each in sorted(path.iterdir(), key=lambda each: each.name)
        if each.is_file() and not each.name.startswith(_IGNORED) and not each.name.endswith(_IGNORED_ENDS)
    ]


def _text(path: Path) -> str:
    if path.stat().st_size > _MOST_BYTES:
        raise OSError(0, f"more than {_MOST_BYTES >> 20} MiB", str(path))
    return path.read_text(encoding="utf-8")


def _why(error: OSError | UnicodeDecodeError) -> str:
    return (
        (error.strerror or str(error)) if isinstance(error, OSError) else f"no text in UTF-8, {error.reason}"
    )
