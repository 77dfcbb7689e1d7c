"""Concurrency limits that claims use, according to the matches from which they came."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

ATTRIBUTE: Final = "concurrencylimits"
MOST_NAMES: Final = 1_000
"""
Limits that the claims of one submitter use together: its ad names them all, and must fit into a message.
"""
_Uses = tuple[tuple[str, float], ...]


def said(names: Iterable[str]) -> bool:
    """Whether ConcurrencyLimits is among the names of attributes."""
    return any(name.lower() == ATTRIBUTE for name in names)


class LimitsInUse:
    """
    How many claims of each submitter use what, and how many there are; counted in whole claims, so nothing is lost by adding up.
    """

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        """Submitter -> claims, whatever they use."""
        self._claims: dict[str, Counter[_Uses]] = {}
        self._names: dict[str, Counter[str]] = {}
        """Submitter -> limit -> in how many of these it is."""

    def count(self, submitter: str, uses: Mapping[str, float], claims: int) -> None:
        """So many claims more, or fewer, that use this."""
        self._numbers[submitter] += claims
        if not self._numbers[submitter]:
            del self._numbers[submitter]
        if not uses:
            return
        counts = self._claims.setdefault(submitter, Counter())
        key = tuple(sorted(uses.items()))
        if key not in counts:
            self._names.setdefault(submitter, Counter()).update(uses.keys())
        counts[key] += claims
        if not counts[key]:
            del counts[key]
            self._names[submitter] -= Counter(uses.keys())
        if not counts:
            del self._claims[submitter], self._names[submitter]

    def claims(self, submitter: str) -> int:
        """How many claims a submitter has."""
        return self._numbers[submitter]

    def names(self, submitter: str) -> Iterable[str]:
        """Which limits they use."""
        return self._names.get(submitter, Counter[str]()).keys()

    def of(self, submitter: str) -> dict[str, float]:
        """What the claims of a submitter use."""
        sums: dict[str, float] = {}
        for uses, claims in self._claims.get(submitter, Counter[_Uses]()).items():
            for name, number in uses:
                sums[name] = sums.get(name, 0.0) + number * claims
        return sums


def added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Both together."""
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in sorted({*one, *other})}
