"""
Routes of the old syntax, one ad for each, as statements.

    [ name = "Slurm"; GridResource = "batch slurm"; requirements = target.queue == "grid"; set_RoutedJob = true; ]

In it TARGET is the job.  HTCondor carries out what copies first, then what deletes, what sets and what evaluates.
"""

import re
from collections.abc import Iterator
from typing import Final

from kettle.classad import ClassAd, ClassAdParseError, unparse
from kettle.classad.ad_files import Form, read_ads
from kettle.classad.nodes import Literal, Node
from kettle.jobs.lines import lines_of
from kettle.routes.knobs import NAMES, OLD, ROUTE
from kettle.routes.reading import RouteFileError, RouteProblem, templates
from kettle.routes.settings import SETTINGS
from kettle.submit.configuration_reader import CondorReader, Knob
from kettle.submit.errors import PlacelessError

_ENTRIES: Final = OLD[0]
_DEFAULTS: Final = OLD[-1]
_PREFIXES: Final = {"copy_": "COPY", "delete_": "DELETE", "set_": "SET", "eval_set_": "EVALSET"}
"""In the order in which they are carried out."""
_TARGET: Final = re.compile(r"\bTARGET\.", re.IGNORECASE)
_STRING: Final = re.compile(r'("(?:[^"\\]|\\.)*")')


def convert_routes(text: str, source: str) -> str:
    """
    The text of a route file with its old routes as new ones; all else stays as it is.

    Raises:
        RouteFileError: they cannot be read.
    """
    reader = CondorReader({}, {}, templates(), includes=False)
    reader.read_text(text, source)
    entries = reader.knobs.get(_ENTRIES.lower())
    for name in OLD[1:3]:
        if (elsewhere := reader.knobs.get(name.lower())) is not None:
            line = elsewhere.place.line
            sentence = (
                f"line {line}: {name} says where the routes are: convert what is in there as {_ENTRIES}"
            )
            raise RouteFileError(source, (RouteProblem(sentence, line),))
    if entries is None:
        return text
    defaults = reader.knobs.get(_DEFAULTS.lower())
    base = _ads(defaults, reader, source)[:1] if defaults else []
    routes = [_merged(base[0] if base else ClassAd(), ad) for ad in _ads(entries, reader, source)]
    names = [_name(ad, number) for number, ad in enumerate(routes, 1)]
    told = reader.knobs.get(NAMES.lower())
    parts = [_without(text, [knob for knob in (entries, defaults) if knob is not None]).rstrip("\n")]
    if told is None:
        parts.append(f"{NAMES} = {' '.join(names)}")
    for name, ad in zip(names, routes, strict=True):
        parts.append(
            "\n".join([f"{ROUTE}{name} @=end", *(f"    {line}" for line in _statements(ad)), "@end"])
        )
    return "\n\n".join(part for part in parts if part) + "\n"


def _ads(knob: Knob, reader: CondorReader, source: str) -> list[ClassAd]:
    line = knob.place.line
    try:
        return list(read_ads(reader.expander().expand(knob.text), Form.NEW))
    except ClassAdParseError as error:
        at = knob.lines[min(error.line, len(knob.lines)) - 1] if knob.lines else line
        sentence = f"line {at}: {knob.name}: {error.sentence}"
        raise RouteFileError(source, (RouteProblem(sentence, at),)) from error
    except PlacelessError as error:
        raise RouteFileError(source, (RouteProblem(f"line {line}: {knob.name}: {error}", line),)) from error


def _merged(defaults: ClassAd, ad: ClassAd) -> ClassAd:
    """A route with what the defaults say and it does not."""
    merged = defaults.copy()
    for name in ad:
        merged[name] = ad[name]
    return merged


def _name(ad: ClassAd, number: int) -> str:
    """As it may be part of a configuration name."""
    text = _string(ad.get("name")) or _string(ad.get("gridresource")) or f"route{number}"
    return re.sub(r"[^A-Za-z0-9_]+", "_", text)


def _string(node: Node | None) -> str:
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else ""


def _statements(ad: ClassAd) -> Iterator[str]:
    names = list(ad)
    rest = [name for name in names if not name.lower().startswith(tuple(_PREFIXES))]
    for name in rest:
        key, node = name.lower(), ad[name]
        text = unparse(node)
        if key == "name":
            continue
        if key == "requirements":
            yield f"REQUIREMENTS {_of_job(text)}"
        elif key == "targetuniverse":
            yield f"UNIVERSE {text}"
        elif key in SETTINGS:
            yield f"{name} = {_of_job(text)}"
        else:
            yield f"{name} = {_string(node) or text}"
    for prefix, word in _PREFIXES.items():
        for name in names:
            if name.lower().startswith(prefix):
                yield from _statement(word, name[len(prefix) :], ad[name])


def _statement(word: str, name: str, node: Node) -> Iterator[str]:
    match word:
        case "COPY":
            yield f"COPY {name} {_string(node)}"
        case "DELETE":
            if not isinstance(node, Literal) or node.value is not False:
                yield f"DELETE {name}"
        case "EVALSET":
            yield f"EVALSET {name} {_of_job(unparse(node))}"
        case _:
            yield f"SET {name} {unparse(node)}"


def _of_job(text: str) -> str:
    """An expression of a route, in which TARGET is the job, as one over the job."""
    pieces = _STRING.split(text)
    return "".join(piece if i % 2 else _TARGET.sub("", piece) for i, piece in enumerate(pieces))


def _without(text: str, knobs: list[Knob]) -> str:
    """The text without the lines of some of its knobs."""
    lines = lines_of(text)
    gone: set[int] = set()
    for knob in knobs:
        start = knob.place.line - 1
        end = max(knob.lines, default=start + 1)
        if "@=" in lines[start]:
            tag = lines[start].partition("@=")[2].strip()
            while end < len(lines) and lines[end].strip() != f"@{tag}":
                end += 1
            end += 1
        else:
            while lines[end - 1].rstrip().endswith("\\") and end < len(lines):
                end += 1
        gone.update(range(start, end))
    return "\n".join(line for number, line in enumerate(lines) if number not in gone)
