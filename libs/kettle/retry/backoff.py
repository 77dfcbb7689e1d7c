"""How long to wait before something that failed is tried again. Pure: chance is given in."""

from typing import Final

import msgspec

_EXPONENT: Final = 64
"""By then any wait has reached its longest; a larger power could overflow."""


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """
    Waits that grow from failure to failure: `constant + first * factor^n` seconds after failure n, `longest` at most.

    Each is cut by up to the share `spread`, so that a crowd that failed together comes back spread out. A process that is alone,
    as with its own disk or its own children, has nobody to be spread from: 0.
    """

    first: float
    longest: float
    factor: float = 2.0
    constant: float = 0.0
    spread: float = 0.5

    def length(self, failures: int) -> float:
        """The whole wait after a failure, seconds; `failures` counts those before it in a row."""
        return min(self.constant + self.first * self.factor ** min(failures, _EXPONENT), self.longest)

    def delay(self, failures: int, entropy: float) -> float:
        """The wait, cut by chance: `entropy` is from 0 to 1."""
        return self.length(failures) * (1.0 - self.spread * (1.0 - entropy))


def steady(seconds: float, *, spread: float = 0.5) -> Backoff:
    """Waits that do not grow."""
    return Backoff(first=seconds, longest=seconds, spread=spread)
