"""
The names of HTCondor's reason codes, and the attributes that count holds and evictions by them.

`NumHoldsByReason = [ UserRequest = 1; JobPolicy = 3 ]`: an ad within the ad, so that a policy may say
`NumHoldsByReason.JobPolicy > 2`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from kettle_wire.ads.types import Expr, Scalar
from kettle_wire.codes import HoldCode, VacateCode

_COUNT: Final = re.compile(r"(\w+) = (\d+)")


NAMES: Final[Mapping[int, str]] = {int(code): code.name for kind in (HoldCode, VacateCode) for code in kind}
"""HoldReasonCode (below 1000) or VacateReasonCode -> its name."""


@lru_cache(maxsize=1024)
def counted(so_far: Scalar | None, code: int) -> Expr:
    """An attribute that counts by reason, after one more of this code; None: there was none yet."""
    counts = dict(_COUNT.findall(so_far.expr)) if isinstance(so_far, Expr) else {}
    name = NAMES.get(code, f"Code{code}")
    counts[name] = str(int(counts.get(name, "0")) + 1)
    return Expr("[ " + "; ".join(f"{each} = {count}" for each, count in counts.items()) + " ]")
