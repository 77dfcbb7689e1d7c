"""
`$$(Attr)`, `$$(Attr:TEXT)` and `$$([EXPRESSION])`: what a job says of the machine on which it will run.

They stay in the job's ad as they are, and become text in that copy of it which goes to the machine.
"""

import re
from collections.abc import Callable
from typing import Final

from kettle_wire.ads.types import Ad, Expr, Scalar

SCRATCH: Final = "$$(CondorScratchDir)"
"""In an environment the directory of the job, which only its starter knows."""

_REFERENCE: Final = re.compile(
    r"\$\$\((?:\[(?P<expression>.*?)\]|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<default>[^()]*))?)\)"
)
_DOLLARS: Final = "DOLLARDOLLAR"
_OWN: Final = "match_"
"""How attributes begin that tell of a match, in lower case; in those nothing is put in."""


def with_match(ad: Ad, attribute: Callable[[str], str | None], expression: Callable[[str], str | None]) -> Ad:
    """
    The ad with the values of its references: `attribute` gives that of the machine, `expression` evaluates.

    One without a value stays as it is: see `unknown`.
    """

    def value(found: re.Match[str]) -> str:
        if (text := found["expression"]) is not None:
            known = expression(text)
        elif found["name"] == _DOLLARS:
            known = "$$"
        else:
            known = attribute(found["name"]) or found["default"]
        return found[0] if known is None or found[0] == SCRATCH else known

    changed = {
        name: Expr(_REFERENCE.sub(value, text)) if isinstance(given, Expr) else _REFERENCE.sub(value, text)
        for name, given in ad.items()
        if (text := _referring(name, given)) is not None
    }
    return {**ad, **changed} if changed else ad


def unknown(ad: Ad) -> str:
    """A reference that was left without a value; empty if there is none."""
    for name, given in ad.items():
        text = _referring(name, given)
        found = None if text is None else _REFERENCE.search(text.replace(SCRATCH, ""))
        if found is not None:
            return found[0]
    return ""


def _referring(name: str, given: Scalar) -> str | None:
    text = given.expr if isinstance(given, Expr) else given if isinstance(given, str) else ""
    return text if "$$(" in text and not name.lower().startswith(_OWN) else None
