"""
Parameters in texts: `$x` and `${x}`.

A text is read once, so what stands in a value is never taken for a parameter; a name that is none stays as it is.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

_NAMED: Final = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_IN_URLS: Final = "!#$%&'()*+,/:;=?@[]~"
"""What means something in a URL, and stays: a parameter may be a whole one."""


def substituted(text: str, parameters: Mapping[str, str]) -> str:
    """The text with the values of the parameters that it names."""
    return _NAMED.sub(lambda found: parameters.get(found[1] or found[2], found[0]), text)


def substituted_length(text: str, parameters: Mapping[str, str]) -> int:
    """How many characters `substituted` makes of a text, of which a few may name a long value very often."""
    lengths = {name: len(value) for name, value in parameters.items()}
    more = (
        lengths.get(found[1] or found[2], len(found[0])) - len(found[0]) for found in _NAMED.finditer(text)
    )
    return len(text) + sum(more)


def substituted_url(url: str, parameters: Mapping[str, str]) -> str:
    """
    The URL with the values of parameters; what may not stand in one (blanks, quotes) is encoded in values.
    """
    return substituted(url, {name: quote(value, safe=_IN_URLS) for name, value in parameters.items()})


def leads_outside(path: str) -> bool:
    """Whether a path, with its values, leads out of the directory that it begins at."""
    return path.startswith("/") or ".." in path.split("/") or not path.strip("/")
