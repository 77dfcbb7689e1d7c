"""
Which daemon a name means: HTCondor's rule, for all commands and kinds of daemons.

A daemon is meant by its name; by `NAME@HOST`; or by its host alone, if that has one such daemon.  A host is meant by its
whole name, or by what stands before the first dot.  Letters are compared without case.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kettle_services.condor.errors import ToolError

_SHOWN: Final = 20
"""Names in a sentence."""


class Daemon(NamedTuple):
    """A daemon, as its ad names it."""

    name: str
    machine: str = ""


class NoSuchDaemonError(ToolError):
    """The pool has no daemon that is meant by a name, now."""


def meant(role: str, said: str, daemons: Iterable[Daemon]) -> str:
    """
    The name of the daemon that is meant.

    Raises:
        ToolError: it may be several.
        NoSuchDaemonError: it is none.
    """
    there = sorted(set(daemons))
    for way in _WAYS:
        found = sorted({daemon.name for daemon in there if way(said.lower(), daemon)})
        if len(found) == 1:
            return found[0]
        if found:
            raise ToolError(f"{said} may be any of {', '.join(found)}: write the whole name")
    names = [daemon.name for daemon in there]
    more = ", ..." if len(names) > _SHOWN else ""
    known = f"it has {', '.join(names[:_SHOWN])}{more}" if names else "it has none now"
    raise NoSuchDaemonError(f"Can't find address for {role} {said}: the pool has no such {role}; {known}")


def _named(said: str, daemon: Daemon) -> bool:
    return said == daemon.name.lower()


def _named_at_host(said: str, daemon: Daemon) -> bool:
    name, _, host = said.partition("@")
    return name == daemon.name.lower() and is_host(host, daemon.machine)


def _at_host(said: str, daemon: Daemon) -> bool:
    return is_host(said, daemon.machine)


def _begins(said: str, daemon: Daemon) -> bool:
    return is_host(said, daemon.name)


def is_host(said: str, machine: str) -> bool:
    """Of two names of a host, one may be what stands before the other's first dot."""
    said, machine = said.lower(), machine.lower()
    if not said or not machine:
        return False
    return said == machine or said == machine.partition(".")[0] or machine == said.partition(".")[0]


_WAYS: Final = (_named, _named_at_host, _at_host, _begins)
"""The first of these by which anything is found counts."""
