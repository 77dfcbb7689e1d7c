"""condor_transform_ads: transforms of jobs, tried on ads of files."""

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from kettle.jobs.lines import lines_of
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.errors import ToolError, WordsError

if TYPE_CHECKING:
    from kettle.classad import ClassAd
    from kettle.submit.configuration_reader import CondorReader
    from kettle.transforms import Transform
    from kettle_wire.ads.types import Ad

_FORMS: Final = ("json", "long", "new", "xml")
_NOT_YET: Final = ("testing", "unit-test")
_NAMED: Final = {"jobtransforms": "JOB_TRANSFORM_", "jobroute": "JOB_ROUTER_ROUTE_"}
"""Options that name transforms of a configuration, and what its names begin with."""
OPTIONS: Final = {
    "convertoldroutes": Option(),
    "debug": Option(letters=True),
    "in": Option(takes=1, letters=True),
    "out": Option(takes=1, letters=True),
    "quiet": Option(),
    "rules": Option(takes=1),
    "terse": Option(),
    "verbose": Option(),
    **{form: Option() for form in _FORMS},
    **{name: Option(takes=1) for name in (*_NAMED, *_NOT_YET)},
}
HELP: Final = {
    "condor_transform_ads": """\
usage: condor_transform_ads -rules FILE [options] [NAME=VALUE ...] [IN]

Carry out the transforms of a rules file on each ad of a file, or of standard input, and print what they come to: how to try
what is to become a job transform of a schedd.  An ad that does not meet the REQUIREMENTS stays as it is.  No pool is asked.

  -rules FILE            statements as of a job transform; may be repeated, later ones see the macros of earlier ones.  A file
                         that sets JOB_TRANSFORM_NAME or JOB_ROUTER_ROUTE_NAME is configuration for the next two options
  -jobtransforms NAMES   the transforms of these names, with commas between them, of a -rules file before it or of the knobs
  -jobroute NAME         the route of this name, alone: condor_job_router_info -route-jobs carries out those around it too
  -convertoldroutes      print IN, a configuration with JOB_ROUTER_ENTRIES, with these routes as transforms
  -in[:FORM] FILE        ads, as IN; - is standard input; FORM is long, json, xml or new, as which it looks if it is left out
  -out[:FORM[,nosort]] FILE   where to, and in which form; - is standard output
  -long, -json, -xml, -new   the form of the output (long)
  NAME=VALUE             a macro
  -verbose               say of each ad on standard error which rules it met
  -quiet                 say nothing of statements that could not be carried out
  -terse, -debug         change nothing here

A rules file may end with the statement TRANSFORM, which has the forms of a queue statement: TRANSFORM 2, TRANSFORM name in
(a b), TRANSFORM name from FILE; each ad is then carried through the file once for each item.  The exit status is 1 if a statement could not be carried out.
""",
}
_MACRO: Final = re.compile(r"([A-Za-z_][\w.]*)\s*=(.*)", re.DOTALL)
_LAST: Final = re.compile(r"^[ \t]*TRANSFORM\b(?![ \t]*=)[ \t]*(.*)", re.IGNORECASE | re.MULTILINE)
_CONFIGURATION: Final = re.compile(
    r"^[ \t]*JOB_(?:TRANSFORM|ROUTER_ROUTE)_\w+[ \t]*@?=", re.IGNORECASE | re.MULTILINE
)
_STANDARD: Final = "-"


class _Wanted(msgspec.Struct):
    """What was typed."""

    rules: list[tuple[str, str]] = []
    """An option, and what it names."""
    convert: bool = False
    macros: dict[str, str] = {}
    source: str = ""
    source_form: str = ""
    target: str = _STANDARD
    target_form: str = "long"
    how: str = ""
    """`verbose` or `quiet`."""


def run(_name: str, words: list[str]) -> int:
    """Transform and print."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    if wanted.convert:
        _write(_converted(wanted.source or _STANDARD), wanted.target)
        return 0
    if not wanted.rules:
        raise WordsError("which rules?  Write -rules FILE")
    work = _Work(list(_all_rules(wanted.rules)), wanted)
    _write("".join(_texts(work.done(_ads(wanted)), wanted)), wanted.target)
    return work.status


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "rules" | "jobtransforms" | "jobroute":
            wanted.rules.append((given.name, value))
        case "convertoldroutes":
            wanted.convert = True
        case "in":
            _take_source(wanted, value)
            wanted.source_form = _form(given.letters)
        case "out":
            wanted.target = value
            wanted.target_form = _form(given.letters.partition(",")[0]) or wanted.target_form
        case "" if match := _MACRO.fullmatch(value):
            wanted.macros[match[1].lower()] = match[2].strip()
        case "":
            _take_source(wanted, value)
        case form if form in _FORMS:
            wanted.target_form = form
        case "verbose" | "quiet" as how:
            wanted.how = how
        case refused if refused in _NOT_YET:
            raise ToolError(f"condor_transform_ads: -{refused} is for HTCondor's own tests")
        case _:
            pass


def _take_source(wanted: _Wanted, name: str) -> None:
    if wanted.source:
        raise WordsError(f"'{name}' is one file of ads too many")
    wanted.source = name


def _form(letters: str) -> str:
    if letters not in {"", "auto", *_FORMS}:
        raise WordsError(f"'{letters}' is no form of ads: write one of {', '.join(_FORMS)}")
    return "" if letters == "auto" else letters


class _Rules(NamedTuple):
    """A rules file: its statements, and how often an ad goes through them, with which macros."""

    transform: "Transform"
    rounds: list[dict[str, str]]


def _all_rules(said: Iterable[tuple[str, str]]) -> Iterator[_Rules]:
    """What is carried out, in the order in which it was typed."""
    from kettle.submit.configuration_reader import CondorReader

    configured = CondorReader({}, {}, includes=False)
    for option, value in said:
        if option != "rules":
            for name in value.replace(",", " ").split():
                yield _named(_NAMED[option] + name, configured)
            continue
        text = _text(value)
        if _CONFIGURATION.search(text):
            configured.read_text(text, value)
        else:
            yield _rules(text, value)


def _named(name: str, configured: "CondorReader") -> _Rules:
    """A transform of a configuration."""
    from kettle.client.connections.condor_config import CondorConfig
    from kettle.transforms import TransformError, parse

    knob = configured.knobs.get(name.lower())
    text = knob.text if knob else CondorConfig(os.environ).get(name)
    if text is None:
        raise ToolError(f"ERROR: {name} is set neither in a -rules file before it nor as a knob")
    try:
        return _Rules(parse(text, source=name, lines=knob.lines if knob else None), [{}])
    except TransformError as error:
        raise ToolError(f"ERROR: {error}") from error


def _converted(name: str) -> str:
    from kettle.routes import RouteFileError, convert_routes

    try:
        return convert_routes(_text(name), name)
    except RouteFileError as error:
        raise ToolError(f"ERROR: {error}") from error


def _rules(text: str, name: str) -> _Rules:
    from kettle.submit import PlacelessError
    from kettle.transforms import TransformError, parse

    last = _LAST.search(text)
    try:
        transform = parse(text[: last.start()] if last else text, source=name)
    except TransformError as error:
        raise ToolError(f"ERROR: {error}") from error
    if last is None:
        return _Rules(transform, [{}])
    try:
        return _Rules(transform, list(_rounds(last[1].strip(), lines_of(text[last.end() :])[1:])))
    except PlacelessError as error:
        line = text.count("\n", 0, last.start()) + 1
        raise ToolError(f"ERROR: {name}, line {line}: {error}") from error


def _rounds(arguments: str, lines: list[str]) -> Iterator[dict[str, str]]:
    """The macros of each round of a TRANSFORM statement; raises PlacelessError."""
    from kettle.submit.queue_statement import read_iteration

    more = iter(lines)
    iteration = read_iteration(arguments, cwd=Path.cwd(), more=lambda: next(more, None))
    variables = [name.lower() for name in iteration.variables]
    for row in iteration.rows:
        for step in range(iteration.count):
            index = str(row.index)
            own = dict(zip(variables, row.values, strict=True))
            yield {"row": index, "itemindex": index, "step": str(step), "iterating": "1", **own}


def _text(name: str) -> str:
    """Octets that are no text are kept."""
    try:
        data = sys.stdin.buffer.read() if name == _STANDARD else Path(name).read_bytes()
    except OSError as error:
        raise ToolError(f"ERROR: Could not open {name}: {error.strerror}") from error
    return data.decode("utf-8", "surrogateescape")


def _ads(wanted: _Wanted) -> "Iterator[ClassAd]":
    from kettle.classad import ClassAdParseError, Form, read_ads

    form: Form | None = Form(wanted.source_form) if wanted.source_form else None
    try:
        yield from read_ads(_text(wanted.source or _STANDARD), form)
    except ClassAdParseError as error:
        where = "standard input" if wanted.source in {"", _STANDARD} else wanted.source
        place = f"{where}, line {error.line}, column {error.column}"
        raise ToolError(f"ERROR: {place}: {error.sentence}\n{error.excerpt()}") from error


class _Work:
    """The transforms on their way through the ads."""

    def __init__(self, rules: list[_Rules], wanted: _Wanted) -> None:
        from kettle.submit.submit_machine import machine_macros

        self.status = 0
        self._rules = rules
        self._wanted = wanted
        self._macros = {name.lower(): text for name, text in machine_macros().items()} | wanted.macros

    def done(self, ads: "Iterable[ClassAd]") -> "Iterator[ClassAd]":
        """Each ad as it is after all of them, once for each item."""
        from kettle.classad import ClassAd

        for number, ad in enumerate(ads, start=1):
            macros = dict(self._macros)
            found = [ad.to_wire()]
            for rules in self._rules:
                found = [
                    self._through(number, rules.transform, wire, macros, own)
                    for wire in found
                    for own in rules.rounds
                ]
            yield from map(ClassAd.from_wire, found)

    def _through(
        self, number: int, transform: "Transform", wire: "Ad", macros: dict[str, str], own: dict[str, str]
    ) -> "Ad":
        macros |= own
        outcome = transform.apply(wire, now=int(time.time()), macros=macros)
        if outcome is None:
            self._tell(number, f"does not meet the requirements of {transform.source}")
            return wire
        self._tell(number, f"is transformed by {transform.source}")
        for complaint in outcome.complaints:
            self._complain(number, complaint)
        return outcome.ad

    def _tell(self, number: int, what: str) -> None:
        if self._wanted.how == "verbose":
            sys.stderr.write(f"ad {number} {what}\n")

    def _complain(self, number: int, complaint: str) -> None:
        self.status = 1
        if self._wanted.how != "quiet":
            sys.stderr.write(f"ERROR: ad {number}: {complaint}\n")


def _texts(ads: "Iterable[ClassAd]", wanted: _Wanted) -> Iterator[str]:
    from kettle.classad import Form, NotRepresentable, write_ads

    try:
        yield from write_ads(ads, Form(wanted.target_form))
    except NotRepresentable as error:
        raise ToolError(f"ERROR: an ad cannot be written as {wanted.target_form}: {error}") from error


def _write(text: str, name: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    if name == _STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise ToolError(f"ERROR: cannot write {name}: {error.strerror}") from error
