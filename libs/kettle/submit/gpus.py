"""
Which GPUs will do: commands that choose among a machine's devices, by what machines advertise of each of them.
"""

import re
from collections.abc import Mapping
from typing import Final

from kettle.classad import Node, references, unparse
from kettle.classad.nodes import Binary, Logical
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import expression, scalar
from kettle.submit.lookup import Lookup, Setting, placed
from kettle.submit.units import amount
from kettle_wire.ads.types import Ad, Scalar

CHOICES: Final[Mapping[str, tuple[str, str]]] = {
    "gpus_minimum_capability": ("GPUsMinCapability", "Capability >= GPUsMinCapability"),
    "gpus_maximum_capability": ("GPUsMaxCapability", "Capability <= GPUsMaxCapability"),
    "gpus_minimum_memory": ("GPUsMinMemory", "GlobalMemoryMb >= GPUsMinMemory"),
    "gpus_minimum_runtime": ("GPUsMinRuntime", "MaxSupportedVersion >= GPUsMinRuntime"),
    "cuda_version": ("CUDAVersion", "MaxSupportedVersion >= CUDAVersion"),
}
"""Command -> attribute, and what it adds to RequireGPUs."""

_VERSION: Final = re.compile(r"(\d{1,3})(?:\.(\d{1,2}))?")
_WHOLE: Final = re.compile(r"\d{4,6}")


def choices(lookup: Lookup) -> Ad:
    """What the description says of the devices; without `request_gpus` it says nothing."""
    ad: Ad = {}
    for name, (attribute, _) in CHOICES.items():
        if given := lookup.get(name):
            ad[attribute] = _bound(given, name)
    return ad


def chosen(own: Node | None, ad: Ad) -> Node | None:
    """
    RequireGPUs: the submitter's own expression, and what follows from the `ad` of his choices.

    About a property that the expression looks at itself nothing is added.
    """
    looked_at: set[str] = set()
    if own is not None:
        found = references(own)
        looked_at = {name.lower() for name in (*found.internal, *found.external)}
    clauses = [
        clause
        for attribute, clause in CHOICES.values()
        if attribute in ad and clause.split()[0].lower() not in looked_at
    ]
    if not clauses:
        return own
    first = [] if own is None else [_joinable(own)]
    return expression(" && ".join([*first, *clauses]))


def _cuda(given: Setting) -> int:
    """The version of the CUDA runtime that the job was made for, as CUDA counts them."""
    if version := _VERSION.fullmatch(given.text):
        return _cuda_number(version)
    if not _WHOLE.fullmatch(given.text):
        given.refuse(f"cuda_version must be a version, as 12.4 or 12, not '{given.text}'")
    return int(given.text)


def _bound(given: Setting, name: str) -> Scalar:
    if name == "cuda_version":
        return _cuda(given)
    if name == "gpus_minimum_memory" and (megabytes := amount(given.text, unit="M")) is not None:
        return megabytes
    if name == "gpus_minimum_runtime" and (version := _VERSION.fullmatch(given.text)):
        return _cuda_number(version)
    try:
        return scalar(given.text)
    except PlacelessError as error:
        raise placed(given, error) from error


def _cuda_number(version: re.Match[str]) -> int:
    """12.4 is 12040: so drivers say up to which version they go (CUDA_VERSION of cuda.h)."""
    return 1000 * int(version[1]) + 10 * int(version[2] or 0)


def _joinable(node: Node) -> str:
    """An expression as a part of an and: in parentheses, unless it holds together without."""
    text = unparse(node)
    tight = isinstance(node, Binary) or (isinstance(node, Logical) and node.op == "&&")
    return text if tight else f"({text})"
