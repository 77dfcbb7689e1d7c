"""
What is wrong with a route file, or looks as if it were: with sentences, and with what sample ads come to.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Final

import msgspec

from kettle.classad import read_ads
from kettle.routes.decision import try_route
from kettle.routes.knobs import IDLE_KNOBS, IDLE_SETTINGS, KNOBS, PREFIXES
from kettle.routes.reading import RouteFileError, RouteProblem, read_routes, templates
from kettle.routes.table import Route, RouteTable, Selection
from kettle.submit.configuration_reader import CondorReader
from kettle.terminal.nearest_names import did_you_mean
from kettle.transforms import Transform
from kettle_wire.ads.types import Ad, Expr

_NUMBERS: Final = ("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "BatchRuntime")
"""Attributes that are numbers, or expressions that come to some."""
_CALL: Final = re.compile(r"\$\(\s*([A-Za-z0-9_.]+)\s*\)")
"""A macro without a default."""
_DEFINED: Final = re.compile(r"\bdefined\s+([A-Za-z0-9_.]+)", re.IGNORECASE)
"""A macro that an `if` asks for, so that its absence is thought of."""


class RouteReport(msgspec.Struct, frozen=True):
    """What a check found."""

    table: RouteTable | None
    """None: the file is refused."""
    refused: tuple[RouteProblem, ...]
    warnings: tuple[RouteProblem, ...]


def samples() -> list[Ad]:
    """Ads as jobs of compute entrypoints have them, to try routes on."""
    text = files(__package__ or "").joinpath("samples.ads").read_text(encoding="utf-8")
    return [ad.to_wire() for ad in read_ads(text)]


def check(text: str, source: str, ads: Sequence[Ad], now: int) -> RouteReport:
    """Look at the text of a route file, and at what its statements come to on `ads`."""
    try:
        table = read_routes(text, source)
    except RouteFileError as error:
        return RouteReport(None, error.problems, ())
    found = [*_knobs(text, source), *_idle(table), *_order(table), *_macros(table), *_tried(table, ads, now)]
    return RouteReport(table, (), tuple(sorted(found, key=lambda each: each.line)))


def _knobs(text: str, source: str) -> Iterator[RouteProblem]:
    """Names that nothing looks at."""
    reader = CondorReader({}, {}, templates(), includes=False)
    reader.read_text(text, source)
    listed = {
        prefix: {
            word.lower()
            for name in names
            for word in re.split(r"[\s,]+", reader.expander().value(name) or "")
        }
        for prefix, names in PREFIXES.items()
    }
    for key, knob in reader.knobs.items():
        line, name = knob.place.line, knob.name
        if knob.place.source != source or not key.startswith("job_router_") or name.upper() in KNOBS:
            continue
        prefix = next((each for each in PREFIXES if key.startswith(each.lower())), "")
        if name.upper() in IDLE_KNOBS:
            yield RouteProblem(f"line {line}: {name} has no meaning here: {IDLE_KNOBS[name.upper()]}", line)
        elif not prefix:
            near = did_you_mean(name.upper(), KNOBS)
            yield RouteProblem(f"line {line}: there is no {name}{near}", line)
        elif key.removeprefix(prefix.lower()) not in listed[prefix]:
            lists = " or ".join(PREFIXES[prefix])
            yield RouteProblem(f"line {line}: {name} is not used: {lists} does not name it", line)


def _idle(table: RouteTable) -> Iterator[RouteProblem]:
    """Settings that change nothing."""
    for route in table.routes:
        for each in route.transform.statements:
            if each.word == "=" and (why := IDLE_SETTINGS.get(each.name.lower())):
                sentence = f"route {route.name}, line {each.line}: {each.name} has no meaning here: {why}"
                yield RouteProblem(sentence, each.line)


def _order(table: RouteTable) -> Iterator[RouteProblem]:
    """Routes that another one hides."""
    if table.selection is not Selection.FIRST:
        return
    for i, each in enumerate(table.routes):
        texts = {clause.text for clause in each.clauses}
        for before in table.routes[:i]:
            if {clause.text for clause in before.clauses} <= texts:
                why = "has no requirement" if not before.clauses else "takes all that it would take"
                yield RouteProblem(
                    f"route {each.name} can never be chosen while route {before.name} has room: that one comes before it and {why}",
                    each.line,
                )
                break


def _macros(table: RouteTable) -> Iterator[RouteProblem]:
    """Macros that nothing defines, and that have no default."""
    defined = set(table.macros)
    for transform in _transforms(table):
        defined |= {each.name.lower() for each in transform.statements if each.word in {"=", "evalmacro"}}
    for transform in _transforms(table):
        asked = {name.lower() for each in transform.statements for name in _DEFINED.findall(each.text)}
        for each in transform.statements:
            for name in dict.fromkeys(_CALL.findall(each.text)):
                if name.lower() in defined | asked or name.lower().startswith("my.") or name == "DOLLAR":
                    continue
                yield RouteProblem(
                    f"{transform.source}, line {each.line}: $({name}) is defined nowhere, and becomes nothing: write $({name}:DEFAULT)",
                    each.line,
                )


def _transforms(table: RouteTable) -> Iterator[Transform]:
    yield from table.before
    for each in table.routes:
        yield each.transform
    yield from table.after


def _tried(table: RouteTable, ads: Sequence[Ad], now: int) -> Iterator[RouteProblem]:
    """What statements come to on each ad that a route would take."""
    failed: Counter[tuple[str, str]] = Counter()
    tried: Counter[str] = Counter()
    for each in table.routes:
        for ad in ads:
            tried_ad = try_route(each, ad, table, now)
            if tried_ad is None:
                continue
            tried[each.name] += 1
            for sentence in (*tried_ad.complaints, *_strange(each, tried_ad.ad)):
                failed[each.name, sentence] += 1
    told: set[str] = set()
    for (name, sentence), times in failed.items():
        if sentence not in told:
            told.add(sentence)
            where = re.search(r", line (\d+): ", sentence)
            yield RouteProblem(
                f"{sentence}, for {times} of {tried[name]} sample ads", int(where[1]) if where else 0
            )


def _strange(each: Route, ad: Ad) -> Iterator[str]:
    names = {name.lower(): name for name in ad}
    for name in _NUMBERS:
        value = ad.get(names.get(name.lower(), ""))
        if isinstance(value, str):
            yield f'route {each.name} makes {name} the string "{value}": write it without quotation marks'
        elif isinstance(value, Expr) and value.expr.lower() == "undefined":
            yield f"route {each.name} makes {name} undefined"
