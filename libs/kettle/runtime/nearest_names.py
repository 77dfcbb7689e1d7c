"""The known name that somebody who misspelt one may have meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The nearest of the known names, no matter how it is capitalised; empty if none is near."""
    spelt = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), list(spelt), n=1, cutoff=0.6)
    return spelt[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of a sentence; empty if none is near."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""
