"""
What follows from the names of an ad's attributes alone is worked out once for ads with the same names.

The nodes of a workflow, and the submissions of a loop, are as many clusters with the same names.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import Final, TypeVar

_LETTERS: Final = 8 * 1024
"""Of all names of an ad together, at most, that are remembered; an ordinary one has a tenth of that."""
_ADS: Final = 256

T = TypeVar("T")


def remembered_by_names(work: Callable[[tuple[str, ...]], T]) -> Callable[[tuple[str, ...]], T]:
    """A function of names that remembers its results, which nobody may change."""
    remembering = lru_cache(maxsize=_ADS)(work)

    @wraps(work)
    def remembered(names: tuple[str, ...]) -> T:
        # What somebody makes up is not remembered: it would fill the memory.
        return remembering(names) if sum(map(len, names)) <= _LETTERS else work(names)

    return remembered


def lower_names(names: Iterable[str]) -> Mapping[str, str]:
    """The spelling of each name, by the name in lower case; of several spellings the last one counts."""
    return _lower(tuple(names))


@remembered_by_names
def _lower(names: tuple[str, ...]) -> Mapping[str, str]:
    return MappingProxyType({name.lower(): name for name in names})
