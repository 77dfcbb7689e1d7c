"""Version 1 of HTCondor's module `classad`, on Kettle; names only."""

from importlib import import_module

import_module("kettle_installation")  # finds Kettle where this environment has none

from kettle.bindings.ad_parsing import (
    ParserType,
)
from kettle.bindings.classad_v1 import (
    Attribute,
    ClassAd,
    ExprTree,
    Function,
    Literal,
    parse,
    parseAds,
    parseNext,
    parseOld,
    parseOne,
    register,
    registerLibrary,
)
from kettle.bindings.errors import (
    ClassAdEvaluationError,
    ClassAdException,
    ClassAdParseError,
    ClassAdValueError,
)
from kettle.bindings.expressions import (
    quote,
    unquote,
)
from kettle.bindings.values import (
    Value,
)
from kettle.bindings.versions import (
    classad_version as version,
)

Parser = ParserType

__all__ = [
    "Attribute",
    "ClassAd",
    "ClassAdEvaluationError",
    "ClassAdException",
    "ClassAdParseError",
    "ClassAdValueError",
    "ExprTree",
    "Function",
    "Literal",
    "Parser",
    "ParserType",
    "Value",
    "parse",
    "parseAds",
    "parseNext",
    "parseOld",
    "parseOne",
    "quote",
    "register",
    "registerLibrary",
    "unquote",
    "version",
]
