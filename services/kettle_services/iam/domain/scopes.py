"""
What one token may say that is made from another: the same or less, never more.

A scope covers itself; `condor:/LEVEL` covers the levels that it implies; `storage.<verb>:<path>` covers the same verb below its path,
`storage.modify` also `storage.create`, and `storage.stage` also `storage.read`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from kettle_services.iam.domain.refusals import Code, Denied

CONDOR: Final = "condor:/"
_IMPLIED: Final = {
    "ADMINISTRATOR": {"WRITE", "READ"},
    "CONFIG": {"READ"},
    "DAEMON": {"WRITE", "READ", "ADVERTISE_MASTER", "ADVERTISE_STARTD", "ADVERTISE_SCHEDD"},
    "NEGOTIATOR": {"READ"},
    "WRITE": {"READ"},
}
_VERBS: Final = {"storage.modify": {"storage.create"}, "storage.stage": {"storage.read"}}


def levels(scopes: Collection[str]) -> set[str]:
    """The levels that scopes give, with those that they imply."""
    said = {scope.removeprefix(CONDOR) for scope in scopes if scope.startswith(CONDOR)}
    return said.union(*(_IMPLIED.get(level, set[str]()) for level in said))


def covers(held: str, asked: str) -> bool:
    """Whether who has the one scope may pass on the other."""
    if held == asked:
        return True
    if held.startswith(CONDOR) and asked.startswith(CONDOR):
        return asked.removeprefix(CONDOR) in levels([held])
    verb, colon, path = held.partition(":")
    wanted, also_colon, below = asked.partition(":")
    if not (colon and also_colon and verb.startswith("storage.")):
        return False
    if wanted != verb and wanted not in _VERBS.get(verb, set[str]()):
        return False
    return _within(path, below)


def _within(path: str, below: str) -> bool:
    """Whether a path is the other, or below it, segment by segment; one with `..` is below nothing."""
    if ".." in below.split("/") or not path.startswith("/") or not below.startswith("/"):
        return False
    root = path.rstrip("/")
    return below.rstrip("/") == root or below.startswith(f"{root}/")


def narrowed(asked: Sequence[str], held: Sequence[str], *, whose: str) -> tuple[str, ...]:
    """
    The scopes that are asked for, or all that are held if none is.

    Raises:
        Denied: one of them is more than what is held.
    """
    for scope in asked:
        if not any(covers(each, scope) for each in held):
            raise Denied(
                Code.TOKEN_SCOPE,
                f"{whose} has no scope that covers {scope}; it has: {' '.join(held) or 'none'}",
                status=400,
            )
    return tuple(dict.fromkeys(asked)) or tuple(held)


def narrowed_audiences(asked: Sequence[str], held: Sequence[str], *, whose: str) -> tuple[str, ...]:
    """
    The audiences that are asked for, or all that are held; audiences are compared as they are, with upper and lower case.

    Raises:
        Denied: one of them is not held.
    """
    for audience in asked:
        if audience not in held:
            raise Denied(
                Code.TOKEN_TARGET,
                f"{whose} may not be for {audience}; it may be for: {' '.join(held) or 'nobody'}",
                status=400,
            )
    return tuple(dict.fromkeys(asked)) or tuple(held)
