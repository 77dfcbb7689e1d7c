"""What one token may say that is made from another: the same or less, never more."""

from collections.abc import Sequence
from typing import Final

from kettle.auth.tokens.capabilities import LEVEL_SCOPES, STORAGE_OPERATIONS, covers
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.iam.domain.refusals import Code, Denied

_COMPUTE: Final = ("compute.read", "compute.create", "compute.modify", "compute.cancel")
_WITH_A_MEANING: Final = ("condor:", "storage.", "compute.")
"""How scopes begin whose meaning is known here; others are for other services."""


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


def require_known(scopes: Sequence[str]) -> None:
    """Raises Denied for a scope that begins as one of ours does and is none."""
    for scope in scopes:
        name, _, path = scope.partition(":")
        known = scope in {*LEVEL_SCOPES, *_COMPUTE} or (name in STORAGE_OPERATIONS and path.startswith("/"))
        if scope.startswith(_WITH_A_MEANING) and not known:
            names = (*LEVEL_SCOPES, *_COMPUTE, *(f"{each}:/" for each in STORAGE_OPERATIONS))
            raise Denied(
                Code.TOKEN_SCOPE, f"there is no scope {scope}{did_you_mean(scope, names)}", status=400
            )
