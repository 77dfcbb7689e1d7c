"""
What the scopes of a verified token allow: HTCondor's levels, and paths of storage.

A token with any capability is a capability token: what it allows is in its scopes, and its groups add nothing, not even
if all its capabilities are for other services.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from kettle.auth.mapping.levels import Level
from kettle.auth.tokens.checking.issuers import Covers, Issuer
from kettle.auth.tokens.checking.scopes import has_one_meaning, is_capability
from kettle.auth.tokens.verified import TokenCode, TokenError, VerifiedToken

StorageOperation: TypeAlias = Literal["read", "stage", "create", "modify", "stat"]

LEVEL_SCOPES: Final[Mapping[str, Level]] = {level.scope: level for level in Level}
WRITE_SCOPES: Final = frozenset({"compute.create", "compute.modify", "compute.cancel"})
"""Only all three together are WRITE, which allows each of these acts."""

_GIVES: Final[dict[str, frozenset[StorageOperation]]] = {
    "storage.read": frozenset({"read", "stat"}),
    "storage.stage": frozenset({"stage", "read", "stat"}),
    "storage.create": frozenset({"create", "stat"}),
    "storage.modify": frozenset({"modify", "create", "stat"}),
    "storage.stat": frozenset({"stat"}),
}

STORAGE_OPERATIONS: Final[Mapping[str, StorageOperation]] = {
    f"storage.{operation}": operation for operation in get_args(StorageOperation)
}
"""The operation that each storage scope is named after."""


class TokenRights(msgspec.Struct, frozen=True):
    """What a token itself allows here, without what rules and groups add."""

    levels: frozenset[Level]
    """As its scopes name them; which other levels each implies is decided where levels are."""
    covers: Covers
    """Which jobs the levels are about that come from `compute.*` scopes."""
    capability: bool
    """Whether it is a capability token: then it can do what `levels` says and nothing else."""


def rights(token: VerifiedToken, issuer: Issuer) -> TokenRights:
    """
    The levels of its scopes; `compute.*` counts in WLCG tokens only, as no other profile says what it means.
    """
    levels: set[Level] = {LEVEL_SCOPES[scope] for scope in token.scopes if scope in LEVEL_SCOPES}
    if token.profile == "wlcg":
        if "compute.read" in token.scopes:
            levels.add(Level.READ)
        if WRITE_SCOPES.issubset(token.scopes):
            levels.add(Level.WRITE)
    return TokenRights(frozenset(levels), issuer.compute, any(is_capability(scope) for scope in token.scopes))


def require_level(token: VerifiedToken, issuer: Issuer) -> frozenset[Level]:
    """
    The levels of a capability token; raises TokenError if it has capabilities, and none of them is for us.
    """
    found = rights(token, issuer)
    if found.capability and not found.levels:
        raise TokenError(
            TokenCode.NO_RIGHTS,
            "the token is valid and gives no right here: it needs condor:/READ or condor:/WRITE, or in the WLCG profile"
            " compute.read, or compute.create, compute.modify and compute.cancel together",
        )
    return found.levels


def storage_allows(scopes: Iterable[str], operation: StorageOperation, path: str) -> bool:
    """
    Whether scopes of a verified token allow the operation on the path.

    A scope is about its path and what is below it; one with a slash at its end is about a directory, and not about a file of
    that name.
    """
    return (
        path.startswith("/")
        and has_one_meaning(path)
        and any(_allows(scope, operation, path) for scope in scopes)
    )


def covers(held: str, wanted: str) -> bool:
    """
    Whether who has one scope may have the other: the same, a level that it implies, or a part of its storage.
    """
    if held == wanted:
        return True
    if held in LEVEL_SCOPES and wanted in LEVEL_SCOPES:
        return LEVEL_SCOPES[wanted] in LEVEL_SCOPES[held].implied()
    name, _, path = wanted.partition(":")
    operation = STORAGE_OPERATIONS.get(name)
    return operation is not None and storage_allows([held], operation, path)


def _allows(scope: str, operation: StorageOperation, path: str) -> bool:
    name, _, allowed = scope.partition(":")
    if operation not in _GIVES.get(name, ()) or not allowed.startswith("/"):
        return False
    return path == allowed or path.startswith(allowed if allowed.endswith("/") else f"{allowed}/")
