"""
In which order the introspective sort of GNU's C++ library leaves elements that are all equal.

The algorithm: David Musser, "Introspective Sorting and Selection Algorithms" (1997), with the median of three as pivot and
partitions of at most 16 elements left to an insertion sort, which moves no element among equal ones.
"""

from functools import lru_cache
from typing import Final

_LEFT_ALONE: Final = 16
"""Elements that are not partitioned any further."""


@lru_cache(maxsize=64)
def order_of_equals(count: int) -> tuple[int, ...]:
    """
    The places from which the elements come: element `order_of_equals(n)[i]` of n equal ones is at place i afterwards.
    """
    order = list(range(count))
    waiting = [(0, count)]
    while waiting:
        first, end = waiting.pop()
        while end - first > _LEFT_ALONE:
            # The median of three equal elements is the middle one; partitioning then swaps whatever is not the pivot.
            middle = first + (end - first) // 2
            order[first], order[middle] = order[middle], order[first]
            left, right = first + 1, end - 1
            while left < right:
                order[left], order[right] = order[right], order[left]
                left, right = left + 1, right - 1
            waiting.append((left, end))
            end = left
    return tuple(order)
