"""
The functions of the language, one module per family.

`FUNCTIONS` maps the lower-case name to the function.
A module offers its family as one mapping, `FAMILY`; a new function belongs to a family, a new family here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kettle.classad.functions import (
    arguments,
    clock,
    contexts,
    control,
    conversion,
    lists,
    numeric,
    patterns,
    predicates,
    reflection,
    splitting,
    stringlists,
    texts,
    users,
    versions,
)
from kettle.classad.functions.registry import Function

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        **predicates.FAMILY,
        **conversion.FAMILY,
        **control.FAMILY,
        **reflection.FAMILY,
        **numeric.FAMILY,
        **lists.FAMILY,
        **texts.FAMILY,
        **versions.FAMILY,
        **patterns.FAMILY,
        **clock.FAMILY,
        **stringlists.FAMILY,
        **splitting.FAMILY,
        **arguments.FAMILY,
        **users.FAMILY,
        **contexts.FAMILY,
    }
)

__all__ = ["FUNCTIONS", "Function"]
