"""
The ClassAd language: parsed, written, evaluated, matched, analysed.

    job = ClassAd.from_wire(ad)
    evaluate(parse("Memory >= 1024"), my=job, target=slot)
    matches(job, slot)

Everything here is pure: no I/O, no clock, no chance but what an evaluation's `Context` brings along.

Importing this is cheap: each name is loaded when somebody wants it, and who only reads and writes expressions loads nothing
that evaluates them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kettle.classad.ad import ClassAd
    from kettle.classad.ad import text_of as unparse
    from kettle.classad.context import FOREIGN_STEPS, NOTHING, Context
    from kettle.classad.deltas import AdDelta, apply_delta, delta
    from kettle.classad.errors import ClassAdError, ClassAdParseError, EvaluationFailed, NotRepresentable
    from kettle.classad.evaluating import evaluate, evaluate_attribute, evaluate_within
    from kettle.classad.flattening import flatten
    from kettle.classad.interpreting import interpret, interpret_attribute
    from kettle.classad.jsonform import read_json, write_json
    from kettle.classad.longform import read_long, read_long_ads, write_long
    from kettle.classad.match import matches, one_way, rank
    from kettle.classad.nodes import Node
    from kettle.classad.parser import parse
    from kettle.classad.reading import Form, form_of, read_ads, write_ads
    from kettle.classad.referencing import References, conceals, conjuncts, external_references, references
    from kettle.classad.values import ERROR, UNDEFINED, AbsTime, Exceptional, List, RelTime, Value, is_true

__all__ = [
    "ERROR",
    "FOREIGN_STEPS",
    "NOTHING",
    "UNDEFINED",
    "AbsTime",
    "AdDelta",
    "ClassAd",
    "ClassAdError",
    "ClassAdParseError",
    "Context",
    "EvaluationFailed",
    "Exceptional",
    "Form",
    "List",
    "Node",
    "NotRepresentable",
    "References",
    "RelTime",
    "Value",
    "apply_delta",
    "conceals",
    "conjuncts",
    "delta",
    "evaluate",
    "evaluate_attribute",
    "evaluate_within",
    "external_references",
    "flatten",
    "form_of",
    "interpret",
    "interpret_attribute",
    "is_true",
    "matches",
    "one_way",
    "parse",
    "rank",
    "read_ads",
    "read_json",
    "read_long",
    "read_long_ads",
    "references",
    "unparse",
    "write_ads",
    "write_json",
    "write_long",
]

_AT: Final = {
    "AbsTime": "kettle.classad.values",
    "AdDelta": "kettle.classad.deltas",
    "ClassAd": "kettle.classad.ad",
    "ClassAdError": "kettle.classad.errors",
    "ClassAdParseError": "kettle.classad.errors",
    "Context": "kettle.classad.context",
    "ERROR": "kettle.classad.values",
    "EvaluationFailed": "kettle.classad.errors",
    "Exceptional": "kettle.classad.values",
    "FOREIGN_STEPS": "kettle.classad.context",
    "Form": "kettle.classad.reading",
    "List": "kettle.classad.values",
    "NOTHING": "kettle.classad.context",
    "Node": "kettle.classad.nodes",
    "NotRepresentable": "kettle.classad.errors",
    "References": "kettle.classad.referencing",
    "RelTime": "kettle.classad.values",
    "UNDEFINED": "kettle.classad.values",
    "Value": "kettle.classad.values",
    "apply_delta": "kettle.classad.deltas",
    "conceals": "kettle.classad.referencing",
    "conjuncts": "kettle.classad.referencing",
    "delta": "kettle.classad.deltas",
    "evaluate": "kettle.classad.evaluating",
    "evaluate_attribute": "kettle.classad.evaluating",
    "evaluate_within": "kettle.classad.evaluating",
    "external_references": "kettle.classad.referencing",
    "flatten": "kettle.classad.flattening",
    "form_of": "kettle.classad.reading",
    "interpret": "kettle.classad.interpreting",
    "interpret_attribute": "kettle.classad.interpreting",
    "is_true": "kettle.classad.values",
    "matches": "kettle.classad.match",
    "one_way": "kettle.classad.match",
    "parse": "kettle.classad.parser",
    "rank": "kettle.classad.match",
    "read_ads": "kettle.classad.reading",
    "read_json": "kettle.classad.jsonform",
    "read_long": "kettle.classad.longform",
    "read_long_ads": "kettle.classad.longform",
    "references": "kettle.classad.referencing",
    "write_ads": "kettle.classad.reading",
    "write_json": "kettle.classad.jsonform",
    "write_long": "kettle.classad.longform",
}
_UNDER_ANOTHER_NAME: Final = {"unparse": ("kettle.classad.ad", "text_of")}


def __getattr__(name: str) -> Any:
    """Load what has this name."""
    if name in _UNDER_ANOTHER_NAME:
        module, attribute = _UNDER_ANOTHER_NAME[name]
    elif name in _AT:
        module, attribute = _AT[name], name
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), attribute)
    return value
