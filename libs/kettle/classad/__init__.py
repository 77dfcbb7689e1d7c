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
    from kettle.classad.ad_files import Form, form_of, read_ads, write_ads
    from kettle.classad.context import FOREIGN_STEPS, NOTHING, Context
    from kettle.classad.deltas import AdDelta, apply_delta, delta
    from kettle.classad.errors import ClassAdError, ClassAdParseError, EvaluationFailed, NotRepresentable
    from kettle.classad.evaluator import evaluate, evaluate_attribute, evaluate_within
    from kettle.classad.flattening import flatten
    from kettle.classad.json_form import read_json, write_json
    from kettle.classad.long_form import read_long, read_long_ads, write_long
    from kettle.classad.match import matches, one_way, rank
    from kettle.classad.nodes import Node
    from kettle.classad.parser import parse
    from kettle.classad.reference_analysis import (
        References,
        conceals,
        conjuncts,
        external_references,
        references,
    )
    from kettle.classad.reference_evaluator import interpret, interpret_attribute
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
    "Form": "kettle.classad.ad_files",
    "List": "kettle.classad.values",
    "NOTHING": "kettle.classad.context",
    "Node": "kettle.classad.nodes",
    "NotRepresentable": "kettle.classad.errors",
    "References": "kettle.classad.reference_analysis",
    "RelTime": "kettle.classad.values",
    "UNDEFINED": "kettle.classad.values",
    "Value": "kettle.classad.values",
    "apply_delta": "kettle.classad.deltas",
    "conceals": "kettle.classad.reference_analysis",
    "conjuncts": "kettle.classad.reference_analysis",
    "delta": "kettle.classad.deltas",
    "evaluate": "kettle.classad.evaluator",
    "evaluate_attribute": "kettle.classad.evaluator",
    "evaluate_within": "kettle.classad.evaluator",
    "external_references": "kettle.classad.reference_analysis",
    "flatten": "kettle.classad.flattening",
    "form_of": "kettle.classad.ad_files",
    "interpret": "kettle.classad.reference_evaluator",
    "interpret_attribute": "kettle.classad.reference_evaluator",
    "is_true": "kettle.classad.values",
    "matches": "kettle.classad.match",
    "one_way": "kettle.classad.match",
    "parse": "kettle.classad.parser",
    "rank": "kettle.classad.match",
    "read_ads": "kettle.classad.ad_files",
    "read_json": "kettle.classad.json_form",
    "read_long": "kettle.classad.long_form",
    "read_long_ads": "kettle.classad.long_form",
    "references": "kettle.classad.reference_analysis",
    "write_ads": "kettle.classad.ad_files",
    "write_json": "kettle.classad.json_form",
    "write_long": "kettle.classad.long_form",
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
