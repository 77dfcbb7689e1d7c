"""
A route file, read and compiled: HTCondor's configuration language and its JOB_ROUTER names.

    JOB_ROUTER_ROUTE_NAMES = Slurm Here
    JOB_ROUTER_ROUTE_Slurm @=end
        REQUIREMENTS Queue == "slurm"
        GridResource = "batch slurm"
        MaxJobs = 10000
        default_maxMemory = 4000
    @end
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from kettle.classad import ClassAdParseError
from kettle.jobs.ad import KEPT
from kettle.jobs.routed_attributes import refusal
from kettle.routes.clauses import Clause, clauses_of
from kettle.routes.knobs import (
    AFTER,
    BEFORE,
    CONSTRAINT,
    DEFAULT_MAX_IDLE,
    DEFAULT_MAX_JOBS,
    IN_TURN,
    MAX_JOBS,
    NAMES,
    OLD,
    ROUTE,
    SELECTION,
    TRANSFORM,
)
from kettle.routes.settings import SETTINGS, RouteSettings, SettingError
from kettle.routes.table import Route, RouteTable, Selection
from kettle.submit.configuration_reader import CondorReader, Knob
from kettle.submit.errors import PlacelessError
from kettle.submit.macros import Expander, substitute_self, unclosed
from kettle.terminal.nearest_names import nearest
from kettle.transforms import Transform, TransformError, parse
from kettle.transforms.statements import Statement

PROTECTED: Final = KEPT | {"user", "mytype"}
"""Whose job it is, and which, and what has happened to it."""


class RouteProblem(msgspec.Struct, frozen=True):
    """What is wrong, in one sentence that says where."""

    sentence: str
    line: int = 0
    """Of the route file; 0: it is in no line of it."""

    def __str__(self) -> str:
        return self.sentence


class RouteFileError(ValueError):
    """A route file that is refused, with all that is wrong with it."""

    def __init__(self, source: str, problems: tuple[RouteProblem, ...]) -> None:
        super().__init__("\n".join(f"{source}: {each}" for each in problems))
        self.source = source
        self.problems = problems


@cache
def templates() -> Mapping[str, Mapping[str, str]]:
    """What `use ROUTES : NAME` stands for."""
    text = files(__package__ or "").joinpath("ce.conf").read_text(encoding="utf-8")
    return {"routes": {"ce": text}}


def read_routes(text: str, source: str) -> RouteTable:
    """
    Compile the text of a route file that is called `source`.

    Raises:
        RouteFileError: something in it makes no sense.
    """
    reading = _Reading(text, source)
    table = reading.table()
    if reading.problems:
        raise RouteFileError(source, tuple(sorted(set(reading.problems), key=lambda each: each.line)))
    return table


class _Reading:
    """A file on its way to a table."""

    def __init__(self, text: str, source: str) -> None:
        self.problems: list[RouteProblem] = []
        self._text = text
        self._source = source
        self._reader = CondorReader({}, {}, templates(), includes=False)
        self._reader.read_text(text, source)
        for each in self._reader.complaints:
            where, _, line = each.place.rpartition(":")
            said = f"line {line}: {each.what}: {each.why}"
            self._complain(said if where == source else f"{where}, {said}", int(line))
        self._expander = self._reader.expander()

    def table(self) -> RouteTable:
        """What the file says, as far as it could be understood."""
        for name in OLD:
            if (knob := self._knob(name)) is not None:
                self._complain(
                    f"line {knob.place.line}: {name} is the old syntax: `kettle ce convert` writes the new one",
                    knob.place.line,
                )
        routes = tuple(self._routes())
        constraint = self._value(CONSTRAINT)
        if not routes and not self.problems:
            self._complain(f"there is no route: {NAMES} names none")
        return RouteTable(
            version=hashlib.sha256(self._text.encode("utf-8", "surrogateescape")).hexdigest()[:16],
            source=self._source,
            routes=routes,
            before=tuple(self._transforms(BEFORE)),
            after=tuple(self._transforms(AFTER)),
            macros={key: knob.text for key, knob in self._reader.knobs.items()},
            constraint=constraint,
            clauses=self._clauses(CONSTRAINT, constraint),
            max_jobs=self._most(),
            selection=self._selection(),
        )

    # -- routes and transforms ---------------------------------------------------------------------------------------

    def _routes(self) -> Iterator[Route]:
        for name, knob in self._named(NAMES, ROUTE):
            transform = self._parsed(f"route {name}", knob)
            if transform is None:
                continue
            try:
                settings = self._settings(transform, name)
                text = self._requirements(transform, settings)
                found = Route(
                    name=name,
                    line=knob.place.line,
                    requirements=text,
                    clauses=clauses_of(text),
                    transform=transform,
                    **settings.of_route(),
                )
                self._leads_somewhere(found)
                yield found
            except SettingError as error:
                self._complain(f"route {name}, line {error.line}: {error}", error.line)
            except ClassAdParseError as error:
                self._complain(
                    f"route {name}, line {knob.place.line}: its REQUIREMENTS are no expression: {error.sentence}",
                    knob.place.line,
                )

    def _leads_somewhere(self, each: Route) -> None:
        """That a route of the grid universe says where to, in a way that is carried out."""
        if each.is_of_this_pool or each.edit_job_in_place is not None:
            return
        where = f"route {each.name}, line {each.line}"
        if not each.grid_resource:
            if not any(
                change.lower() == "gridresource"
                for said in each.transform.statements
                for change in said.changes
            ):
                self._complain(
                    f'{where}: it leads nowhere: write GridResource = "batch NAME", or UNIVERSE VANILLA for this pool',
                    each.line,
                )
        elif not re.fullmatch(r"batch\s+\S+.*", each.grid_resource, re.IGNORECASE):
            self._complain(
                f'{where}: GridResource "{each.grid_resource}" is not carried out: write batch and the name of a batch system',
                each.line,
            )

    def _transforms(self, names: str) -> Iterator[Transform]:
        for name, knob in self._named(names, TRANSFORM):
            if (transform := self._parsed(f"transform {name}", knob)) is not None:
                yield transform

    def _named(self, names: str, prefix: str) -> Iterator[tuple[str, Knob]]:
        """What a list of names stands for."""
        defined = {
            key.removeprefix(prefix.lower()): knob.name[len(prefix) :]
            for key, knob in self._reader.knobs.items()
            if key.startswith(prefix.lower()) and not key.endswith("_names")
        }
        listed = self._knob(names)
        line = listed.place.line if listed else 0
        for name in dict.fromkeys(re.split(r"[\s,]+", self._value(names))):
            if not name:
                continue
            if (knob := self._knob(prefix + name)) is not None:
                yield name, knob
                continue
            near = nearest(name, defined.values())
            hint = f"; there is {prefix}{near}" if near else ""
            self._complain(f"line {line}: {names} names {name}, and there is no {prefix}{name}{hint}", line)

    def _parsed(self, what: str, knob: Knob) -> Transform | None:
        if knob.place.source != self._source:
            what += f" of {knob.place.source.rpartition('(')[2].rstrip(')') or knob.place.source}"
        try:
            transform = parse(knob.text, source=what, protected=PROTECTED, lines=knob.lines)
        except TransformError as error:
            for said in error.mistakes:
                found = re.search(r", line (\d+): ", said)
                self._complain(said, int(found[1]) if found else knob.place.line)
            return None
        for each in transform.statements:
            for name in each.changes:
                if why := refusal(name):
                    self._complain(f"{what}, line {each.line}: {each}: {why}", each.line)
            if unclosed(each.text):
                self._complain(f"{what}, line {each.line}: {each}: the macro call is not closed", each.line)
        return transform

    def _settings(self, transform: Transform, name: str) -> RouteSettings:
        """What a route says of itself, as its macros are where they are assigned."""
        macros: dict[str, str] = {}
        settings = RouteSettings(
            max_jobs=self._value(DEFAULT_MAX_JOBS),
            max_idle_jobs=self._value(DEFAULT_MAX_IDLE),
        )
        depth = 0
        for each in transform.statements:
            depth += (each.word == "if") - (each.word == "endif")
            try:
                self._take(each, macros, settings, depth)
            except SettingError as error:
                self._complain(f"route {name}, line {error.line}: {error}", error.line)
        return settings

    def _take(self, each: Statement, macros: dict[str, str], settings: RouteSettings, depth: int) -> None:
        """Raises SettingError."""
        if each.word == "universe":
            settings.universe(each.text, each.line)
        elif each.word == "=":
            key = each.name.lower()
            macros[key] = substitute_self(each.name, each.text, macros.get(key, ""))
            if key in SETTINGS:
                if depth:
                    raise SettingError(
                        each.line, f"{each.name} is read with the file, and cannot depend on an if"
                    )
                settings.take(key, self._expanded(macros[key], macros, each.line), each.line)

    def _requirements(self, transform: Transform, settings: RouteSettings) -> str:
        """All REQUIREMENTS as one expression, with the macros of the file and of the route."""
        macros = {each.name.lower(): each.text for each in transform.statements if each.word == "="}
        texts: list[str] = []
        for each in transform.statements:
            if each.word != "requirements":
                continue
            if "$(my." in each.text.lower():
                raise SettingError(
                    each.line,
                    f"REQUIREMENTS {each.text}: write the attribute itself, it is an expression over the job",
                )
            text = self._expanded(each.text, macros, each.line)
            try:
                clauses_of(text)
            except ClassAdParseError as error:
                raise SettingError(
                    each.line, f"REQUIREMENTS {text}: is no expression: {error.sentence}"
                ) from error
            texts.append(text)
        return " && ".join(f"({text})" for text in texts) if len(texts) > 1 else "".join(texts) or "true"

    # -- the file ----------------------------------------------------------------------------------------------------

    def _knob(self, name: str) -> Knob | None:
        return self._reader.knobs.get(name.lower())

    def _value(self, name: str) -> str:
        """The expanded text of a knob; empty if it is not set."""
        if (knob := self._knob(name)) is None:
            return ""
        try:
            return self._expanded(knob.text, {}, knob.place.line)
        except SettingError as error:
            self._complain(f"line {error.line}: {name}: {error}", error.line)
            return ""

    def _expanded(self, text: str, macros: Mapping[str, str], line: int) -> str:
        """With the macros of the file, and stronger ones of a route."""
        table = {**{key: knob.text for key, knob in self._reader.knobs.items()}, **macros}
        try:
            return Expander(table, {}, entropy=self._expander.entropy).expand(text).strip()
        except PlacelessError as error:
            raise SettingError(line, str(error)) from error

    def _clauses(self, name: str, text: str) -> tuple[Clause, ...]:
        try:
            return clauses_of(text or "true")
        except ClassAdParseError as error:
            knob = self._knob(name)
            line = knob.place.line if knob else 0
            self._complain(f"line {line}: {name} is no expression: {error.sentence}", line)
            return ()

    def _most(self) -> int | None:
        text = self._value(MAX_JOBS)
        if not text or text.startswith("-"):
            return None
        if text.isdecimal():
            return int(text)
        self._complain(f"JOB_ROUTER_MAX_JOBS is no number of jobs: '{text}'", self._line(MAX_JOBS))
        return None

    def _selection(self) -> Selection:
        text = self._value(SELECTION).lower()
        if not text:
            in_turn = self._value(IN_TURN).lower() in {"true", "yes", "t", "1"}
            return Selection.ROUND_ROBIN if in_turn else Selection.FIRST
        try:
            return Selection(text)
        except ValueError:
            line = self._line(SELECTION)
            self._complain(
                f"line {line}: JOB_ROUTER_SELECTION is '{text}': write one of {', '.join(Selection)}", line
            )
            return Selection.FIRST

    def _line(self, name: str) -> int:
        knob = self._knob(name)
        return knob.place.line if knob else 0

    def _complain(self, sentence: str, line: int = 0) -> None:
        self.problems.append(RouteProblem(sentence, line))
