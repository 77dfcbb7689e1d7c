"""The formulas of fair share, for those who apply them and those who show them. Imports nothing."""

import math
from collections.abc import Mapping


def effective_priority(priority: float, factor: float) -> float:
    """What decides who comes first; smaller is better."""
    return priority * factor


def shares(effective: Mapping[str, float]) -> dict[str, float]:
    """
    The part that each should have of what is shared, by its effective priority P; they sum to 1.

        N = sum(max/P_i);  share_i = max/(P_i*N)
    """
    largest = max(effective.values(), default=1.0)
    total = math.fsum(largest / priority for priority in effective.values())
    return {name: largest / (priority * total) for name, priority in effective.items()}


def shares_in_groups(effective: Mapping[str, float], group: Mapping[str, str]) -> dict[str, float]:
    """The part that each would have if all wanted something, among those of the same accounting group."""
    together: dict[str, dict[str, float]] = {}
    for name, priority in effective.items():
        together.setdefault(group.get(name, ""), {})[name] = priority
    return {name: part for each in together.values() for name, part in shares(each).items()}
