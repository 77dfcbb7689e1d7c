"""The known name that somebody who misspelt one may have meant."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

_LONGEST: Final = 256
"""Letters of a name; to compare longer ones takes the square of their length."""
_MOST: Final = 20_000
"""So many known names are compared: a service that is asked has others to serve."""


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """
    The nearest of the known names, no matter how it is capitalised; empty if none is near.

    `likeness`: from 0, everything is near, to 1, only the name itself is.
    """
    import difflib  # only for who has made a mistake: it takes milliseconds

    if len(name) > _LONGEST:
        return ""
    spelt = {each.lower(): each for each in islice(known, _MOST) if len(each) <= _LONGEST}
    close = difflib.get_close_matches(name.lower(), list(spelt), n=1, cutoff=likeness)
    return spelt[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of a sentence; empty if none is near."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""
