"""What one token may say that is made from another: the same or less, never more."""

from collections.abc import Sequence

from kettle.auth.tokens.capabilities import covers
from kettle_services.iam.domain.refusals import Code, Denied


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
