"""HTCondor's module `classad2`, on Kettle; names only."""

from importlib import import_module

import_module("kettle_installation")  # finds Kettle where this environment has none

from kettle.bindings.ad_parsing import (
    ParserType,
    parseAds,
    parseNext,
    parseOne,
)
from kettle.bindings.ads import (
    ClassAd,
)
from kettle.bindings.errors import (
    ClassAdException,
    lastError,
)
from kettle.bindings.expressions import (
    ExprTree,
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
    "ClassAd",
    "ClassAdException",
    "ExprTree",
    "Parser",
    "ParserType",
    "Value",
    "lastError",
    "parseAds",
    "parseNext",
    "parseOne",
    "quote",
    "unquote",
    "version",
]
