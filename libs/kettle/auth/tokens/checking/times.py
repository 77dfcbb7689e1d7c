"""When a token is valid. Pure: the time is given in."""

import math
from collections.abc import Mapping
from typing import Final

from kettle.auth.tokens.verified import TokenCode, TokenError

SKEW_S: Final = 60
"""By so much the clocks of issuers may differ from ours, seconds."""

_LATEST: Final = 1 << 40
"""No time is later; a larger number is a mistake, such as milliseconds squared."""


def check_times(claims: Mapping[str, object], now: float) -> tuple[float | None, float]:
    """
    When a token ends, if it does, and when it was made; `iat` is there.

    Raises TokenError: its time is over or has not come, or one of its times is none.
    """
    expires = _time(claims, "exp") if "exp" in claims else None
    issued = _time(claims, "iat")
    begins = _time(claims, "nbf") if "nbf" in claims else issued
    if expires is not None and now >= expires + SKEW_S:
        raise TokenError(TokenCode.EXPIRED, f"the token expired {_ago(now - expires)} ago: get a new one")
    for what, time in (("is valid", begins), ("was made", issued)):
        if time > now + SKEW_S:
            raise TokenError(
                TokenCode.NOT_YET_VALID,
                f"the token {what} {_ago(time - now)} from now: look at the clocks of its issuer and of this machine",
            )
    return expires, issued


def _ago(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 7200 else f"{whole // 3600} h"


def _time(claims: Mapping[str, object], name: str) -> float:
    value = claims[name]
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not math.isfinite(value)
        or not 0 <= value < _LATEST
    ):
        raise TokenError(
            TokenCode.MALFORMED, f"the claim {name} of the token is not a time in seconds since 1970"
        )
    return value
