"""
The ClassAd language: parsed, written, evaluated, matched, analysed.

    job = ClassAd.from_wire(ad)
    evaluate(parse("Memory >= 1024"), my=job, target=slot)
    matches(job, slot)

Everything here is pure: no I/O, no clock, no chance but what an evaluation's `Context` brings along.
"""

from kettle.classad.ad import ClassAd
from kettle.classad.ad import text_of as unparse
from kettle.classad.context import FOREIGN_STEPS, NOTHING, Context
from kettle.classad.deltas import AdDelta, apply_delta, delta
from kettle.classad.errors import ClassAdError, ClassAdParseError, EvaluationFailed, NotRepresentable
from kettle.classad.evaluate import evaluate, evaluate_attribute, evaluate_within
from kettle.classad.flatten import flatten
from kettle.classad.interpret import interpret, interpret_attribute
from kettle.classad.jsonform import read_json, write_json
from kettle.classad.longform import read_long, read_long_ads, write_long
from kettle.classad.match import matches, one_way, rank
from kettle.classad.nodes import Node
from kettle.classad.parser import parse
from kettle.classad.reading import Form, form_of, read_ads, write_ads
from kettle.classad.references import References, conceals, conjuncts, external_references, references
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
