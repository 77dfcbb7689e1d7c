"""
HTCondor's configuration files, read as HTCondor reads them: what each knob was last set to, and where.

The text rules are those of submit descriptions (`kettle.submit`): macros are expanded when a knob is looked at, but for
one that names itself; conditionals are decided on the way.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle.jobs.lines import joined, lines_of
from kettle.submit.conditions import Conditions
from kettle.submit.errors import PlacelessError
from kettle.submit.includes import MOST_NESTED, included, with_arguments
from kettle.submit.macros import Expander, names_used, substitute_self
from kettle.terminal.nearest_names import nearest

_NAME: Final = r"[A-Za-z_$][\w.$():-]*"
_ASSIGNMENT: Final = re.compile(rf"({_NAME})\s*=(?!=)\s*(.*)", re.DOTALL)
_TAGGED: Final = re.compile(rf"({_NAME})\s*@=\s*(\S+)\s*")
_CONDITIONAL: Final = re.compile(r"(if|elif|else|endif)\b\s*(.*)", re.IGNORECASE | re.DOTALL)
_STATEMENT: Final = re.compile(
    r"@?(include|use|error|warning)\b\s*([^:=]*?)\s*:\s*(.*)", re.IGNORECASE | re.DOTALL
)
_TEMPLATE: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\(((?:[^()]|\([^()]*\))*)\))?\s*(?:,|\s|$)\s*")
_LONGEST: Final = 1_000_000


class Place(msgspec.Struct, frozen=True):
    """A line of a file."""

    source: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}"


class Knob(msgspec.Struct, frozen=True):
    """A knob as it was written last, in its spelling; `text` is not expanded."""

    name: str
    text: str
    place: Place
    lines: tuple[int, ...] = ()
    """The line of the file of each line of the text; comments within are no part of it."""


class Complaint(msgspec.Struct, frozen=True):
    """What could not be carried over, and why."""

    place: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}: {self.why}"


class CondorReader:
    """What the files set; each later one is stronger."""

    def __init__(
        self,
        environ: Mapping[str, str],
        automatic: Mapping[str, str],
        templates: Mapping[str, Mapping[str, str]] = {},
        *,
        includes: bool = True,
    ) -> None:
        """
        `automatic` are macros that HTCondor defines by itself; `templates` is what `use CATEGORY : NAME` stands for.

        `includes`: whether it may read other files and run programs because a file says so.
        """
        self.knobs: Final[dict[str, Knob]] = {}
        """By name in lower case, with a prefix such as `schedd.` if it has one."""
        self.complaints: Final[list[Complaint]] = []
        self._environ = environ
        self._automatic = {name.lower(): text for name, text in automatic.items()}
        self._templates = templates
        self._includes = includes
        self._conditions = Conditions()
        self._depth = 0

    def read_file(self, path: Path) -> None:
        """Read a file, then those that its LOCAL_CONFIG_DIR and LOCAL_CONFIG_FILE name; raises OSError."""
        self._read(str(path), path.read_text(encoding="utf-8", errors="replace"), path.parent)
        read = {path.resolve()}
        for local in self._local_files():
            if local.is_file() and local.resolve() not in read:
                read.add(local.resolve())
                self._read(str(local), local.read_text(encoding="utf-8", errors="replace"), local.parent)

    def read_text(self, text: str, source: str) -> None:
        """
        Read the text of a file that is called `source`; what it includes is sought in the directory of that.
        """
        self._read(source, text, Path(source).parent)

    def expander(self, subsystem: str = "") -> Expander:
        """What replaces macros: for one daemon, with what is set for it alone."""
        table = {**self._automatic, **{name: knob.text for name, knob in self.knobs.items()}}
        prefix = f"{subsystem.lower()}."
        if subsystem:
            own = {name.removeprefix(prefix): text for name, text in table.items() if name.startswith(prefix)}
            table |= own | {"subsystem": subsystem.upper()}
        return Expander(table, self._environ, entropy=random.SystemRandom(), longest=_LONGEST)

    def undefined(self, text: str, subsystem: str = "") -> list[str]:
        """The macros within a text, and within those, that nothing defines and that have no default."""
        table = {**self._automatic, **{name: knob.text for name, knob in self.knobs.items()}}
        pending, seen, missing = [text], set[str](), list[str]()
        while pending:
            said = pending.pop()
            for name in names_used(said):
                if name in seen:
                    continue
                seen.add(name)
                found = table.get(f"{subsystem.lower()}.{name}", table.get(name))
                if found is not None:
                    pending.append(found)
                elif re.search(rf"\$\(\s*{re.escape(name)}\s*\)", said, re.IGNORECASE):
                    missing.append(name.upper())
        return missing

    # -- one source --------------------------------------------------------------------------------------------------

    def _read(self, source: str, text: str, directory: Path) -> None:
        if self._depth == MOST_NESTED:
            self._complain(Place(source, 1), "include", f"more than {MOST_NESTED} files include each other")
            return
        self._depth += 1
        outer = self._conditions.depth
        lines = iter(enumerate(lines_of(text), 1))
        for number, line in _logical(lines):
            place = Place(source, number)
            try:
                self._statement(place, line, lines, directory)
            except PlacelessError as error:
                self._complain(place, line.split("\n")[0][:60], str(error))
        if self._conditions.depth > outer:
            self._complain(Place(source, self._conditions.opened or 0), "if", "it has no endif")
        while self._conditions.depth > outer:
            self._conditions.read("endif", "", 0, self.expander)
        self._depth -= 1

    def _statement(self, place: Place, text: str, lines: Iterator[tuple[int, str]], directory: Path) -> None:
        if conditional := _CONDITIONAL.fullmatch(text):
            self._conditions.read(conditional[1].lower(), conditional[2], place.line, self.expander)
        elif tagged := _TAGGED.fullmatch(text):
            value: dict[int, str] = {}
            for number, line in lines:
                if line.strip() == f"@{tagged[2]}":
                    break
                if not line.lstrip().startswith("#"):
                    value[number] = line.strip()
            else:
                self._complain(place, tagged[1], f"its value has no end: expected a line @{tagged[2]}")
            self._set(place, tagged[1], "\n".join(value.values()), tuple(value))
        elif not self._conditions.active:
            return
        elif statement := _STATEMENT.fullmatch(text):
            self._other(place, statement[1].lower(), statement[2], statement[3].strip(), directory)
        elif assignment := _ASSIGNMENT.fullmatch(text):
            self._set(place, assignment[1], assignment[2].strip(), (place.line,))
        else:
            self._complain(place, text[:60], "it is neither NAME = VALUE nor a statement that HTCondor knows")

    def _set(self, place: Place, name: str, text: str, lines: tuple[int, ...]) -> None:
        if not self._conditions.active:
            return
        name = self.expander().expand(name) if "$" in name else name
        current = self.knobs.get(name.lower())
        before = current.text if current else self._automatic.get(name.lower(), "")
        self.knobs[name.lower()] = Knob(name, substitute_self(name, text, before), place, lines)

    def _other(self, place: Place, word: str, how: str, text: str, directory: Path) -> None:
        match word:
            case "use":
                self._use(place, how, self.expander().expand(text), directory)
            case "include" if not self._includes:
                raise PlacelessError("nothing is included here: write it into this file")
            case "include":
                said = self.expander().expand(text).strip()
                for source, inner in included(how, said, cwd=directory, environ=self._environ):
                    self._read(str(directory / source), inner, directory)
            case _:
                self._complain(place, word, self.expander().expand(text))

    def _use(self, place: Place, category: str, names: str, directory: Path) -> None:
        known = self._templates.get(category.lower(), {})
        position = 0
        while match := _TEMPLATE.match(names, position):
            position = match.end()
            text = known.get(match[1].lower())
            if text is None:
                self._complain(place, f"use {category} : {match[1]}", _unknown(category, match[1], known))
            else:
                source = f"{place} (use {category}:{match[1]})"
                self._read(source, with_arguments(text, match[2] or ""), directory)
        if position < len(names):
            self._complain(place, f"use {category} : {names[position:]}", "it is no name of a template")

    def _local_files(self) -> Iterator[Path]:
        expander = self.expander()
        for directory in _words(expander.value("LOCAL_CONFIG_DIR") or ""):
            place = Path(directory)
            skipped = re.compile(
                expander.value("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP")
                or r"^((\..*)|(.*~)|(#.*)|(.*\.rpm(save|new)))$"
            )
            if place.is_dir():
                yield from sorted(each for each in place.iterdir() if not skipped.match(each.name))
        yield from map(Path, _words(expander.value("LOCAL_CONFIG_FILE") or ""))

    def _complain(self, place: Place, what: str, why: str) -> None:
        self.complaints.append(Complaint(str(place), what, why))


def _logical(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """
    Lines that say something, continuations joined, with the number of the first; a comment within is left out.
    """
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        yield number, joined(text, lambda: next(lines, (0, ""))[1])


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


def _unknown(category: str, name: str, known: Iterable[str]) -> str:
    if category.lower() == "security":
        return "services and people have keys of their own on the bus; there is nothing to negotiate"
    if near := nearest(name, known):
        return f"there is no such template; there is use {category} : {near}"
    return "this template is not known here; write what it stands for (condor_config_val use CATEGORY:NAME prints it)"
