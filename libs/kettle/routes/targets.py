"""Batch systems to which routes lead, and those that there are."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kettle.routes.reading import RouteFileError, RouteProblem
from kettle.routes.table import Route, RouteTable
from kettle.terminal.nearest_names import did_you_mean
from kettle_wire.grid import batch_system

_LITERAL: Final = re.compile(r'"([^"\\]*)"')
"""A value that is the same for all jobs."""


def named(word: str, kinds: Mapping[str, str]) -> str:
    """
    The batch system that is meant by the second word of `GridResource`: of this name, else the first of this kind; `kinds` are by names.
    """
    if word in kinds:
        return word
    return next((name for name, kind in kinds.items() if kind == word), word)


def absent(system: str, kinds: Mapping[str, str]) -> str:
    """Why a route cannot lead to a batch system, as the end of a sentence; empty: it is there."""
    if not system or named(system, kinds) in kinds:
        return ""
    there = (
        f"which has {', '.join(sorted(kinds))}{did_you_mean(system, kinds)}" if kinds else "which is empty"
    )
    return f"there is no batch system {system} in [[ce.batch]], {there}"


def leading_to(table: RouteTable, kinds: Mapping[str, str]) -> RouteTable:
    """
    The same routes where these batch systems are, kinds by names.

    Raises:
        RouteFileError: a route leads to one that is not there.
    """
    if problems := tuple(_problems(table, kinds)):
        raise RouteFileError(table.source, problems)
    return with_systems(table, kinds)


def with_systems(table: RouteTable, kinds: Mapping[str, str]) -> RouteTable:
    """The same routes where these batch systems are; those that lead elsewhere take no jobs."""
    return msgspec.structs.replace(table, systems=kinds)


def _problems(table: RouteTable, kinds: Mapping[str, str]) -> Iterator[RouteProblem]:
    for each in table.routes:
        if each.is_of_this_pool:
            continue
        for line, resource in _resources(each):
            if why := absent(batch_system(resource), kinds):
                yield RouteProblem(
                    f'route {each.name}, line {line}: GridResource "{resource}" leads nowhere: {why}', line
                )


def _resources(each: Route) -> Iterator[tuple[int, str]]:
    """
    Where a route leads by its own words, with their lines; what depends on a job is looked at with the job.
    """
    if each.grid_resource:
        said = [one for one in each.transform.statements if one.word == "=" and _is_resource(one.name)]
        yield said[-1].line if said else each.line, each.grid_resource
    for one in each.transform.statements:
        if one.word == "set" and _is_resource(one.name) and (found := _LITERAL.fullmatch(one.text.strip())):
            yield one.line, found[1]


def _is_resource(name: str) -> bool:
    return name.lower() == "gridresource"
