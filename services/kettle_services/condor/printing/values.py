"""
What an attribute or an expression comes to in an ad, and how HTCondor's tools write it.

Most of what is asked for is a plain value; the language of expressions is loaded for the rest.
"""

import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kettle_services.condor.errors import ToolError
from kettle_wire.ads.types import Ad, Expr

if TYPE_CHECKING:
    from kettle.classad import ClassAd, Context

_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "undefined", "error", "is", "isnt", "parent", "currenttime"})

Plain = bool | int | float | str
UNDEFINED: Final = "undefined"


class AdRow:
    """One ad, asked for attributes and expressions."""

    def __init__(self, ad: Ad) -> None:
        self.ad = ad
        self._by_key: dict[str, Plain | Expr | None] | None = None
        self._parsed: ClassAd | None = None

    def stored(self, name: str) -> Plain | Expr | None:
        """What stands behind an attribute's name."""
        if (
            name in self.ad
        ):  # as it is written nearly always: letters are compared without case only for the rest
            return self.ad[name]
        if self._by_key is None:
            self._by_key = {each.lower(): value for each, value in self.ad.items()}
        return self._by_key.get(name.lower())

    def value(self, text: str) -> Any:
        """
        What an attribute or an expression comes to: a plain value, None if it is undefined, or another of the language.
        """
        if is_name(text):
            stored = self.stored(text)
            if not isinstance(stored, Expr):
                return stored
            text = stored.expr
        from kettle.classad import UNDEFINED as UNKNOWN
        from kettle.classad import ClassAd, EvaluationFailed, evaluate, parse

        if self._parsed is None:
            self._parsed = ClassAd.from_wire(self.ad)
        try:
            found = evaluate(parse(text), my=self._parsed, context=_context())
        except EvaluationFailed:
            from kettle.classad import ERROR

            return ERROR
        return None if found is UNKNOWN else found

    def meets(self, condition: str) -> bool:
        """Whether a condition holds, by what the pool's services take for true."""
        from kettle.classad import is_true

        return is_true(self.value(condition))

    def text(self, text: str) -> str:
        """The value as `-autoformat` prints it: strings without quotes."""
        value = self.value(text)
        if type(value) is int:
            return str(value)
        return value if isinstance(value, str) else written(value)

    def quoted(self, text: str) -> str:
        """The value as an expression is written: strings in quotes."""
        return written(self.value(text))

    def raw(self, text: str) -> str:
        """An attribute as it stands in the ad; an expression as it was typed."""
        if not is_name(text):
            return text
        stored = self.stored(text)
        return stored.expr if isinstance(stored, Expr) else written(stored)


@lru_cache(maxsize=1)
def _context() -> "Context":
    """The clock and the zone of this machine, and what an expression of somebody else may take."""
    from kettle.classad import FOREIGN_STEPS, Context

    return Context(
        now=lambda: int(time.time()),
        random=random.random,
        utc_offset=lambda instant: time.localtime(instant).tm_gmtoff,
        max_steps=FOREIGN_STEPS,
    )


@lru_cache(maxsize=256)
def is_name(text: str) -> bool:
    """Whether it is the name of an attribute and nothing else."""
    return _NAME.fullmatch(text) is not None and text.lower() not in _WORDS


def readable(text: str, where: str) -> str:
    """The text, if it is an attribute or an expression; raises ToolError, which says where it stands."""
    if not is_name(text):
        from kettle.classad import ClassAdParseError, parse

        try:
            parse(text)
        except ClassAdParseError as error:
            raise ToolError(
                f"{where}: '{text}' is neither an attribute nor an expression: {error}"
            ) from error
    return text


def written(value: Any) -> str:
    """A value as the language writes it."""
    match value:
        case None:
            return UNDEFINED
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str() if not _SPECIAL.search(value):
            return f'"{value}"'
        case _:
            from kettle.classad import unparse
            from kettle.classad.printing import long_real_text

            finite = isinstance(value, float) and value - value == 0
            return long_real_text(value) if finite else unparse(value)


_SPECIAL: Final = re.compile(r'[\\"\x00-\x1f\x7f\ud800-\udfff]')


def names_in(texts: Iterable[str]) -> list[str]:
    """The attributes that attributes and expressions are about, each once."""
    found: dict[str, str] = {}
    for text in texts:
        for name in [text] if is_name(text) else _references(text):
            found.setdefault(name.lower(), name)
    return list(found.values())


def _references(text: str) -> list[str]:
    from kettle.classad import parse, references

    asked = references(parse(text))
    return sorted(name.rpartition(".")[2] for name in asked.external | asked.internal)


Fetch = Callable[[list[str]], list[Ad]]
"""Asks for ads with these attributes."""
Show = Callable[[Sequence[Ad]], list[str]]
"""Shows some ads; or shows nothing, and returns which further attributes it needs of them."""
Source = Callable[[list[str], Show], None]
"""Asks for ads with these attributes, and has them shown, perhaps little by little."""


def source_of(fetch: Fetch) -> Source:
    """All of them at once."""

    def ask(names: list[str], show: Show) -> None:
        while more := show(fetch(names)):
            names = [*names, *more]

    return ask


def fetched(texts: Sequence[str], fetch: Fetch) -> list[Ad]:
    """Ads with what is needed to say what attributes and expressions come to, and little else."""
    found: list[Ad] = []
    needs = Needs(texts)

    def keep(ads: Sequence[Ad]) -> list[str]:
        if more := needs.of(ads):
            return more
        found[:] = ads
        return []

    source_of(fetch)(needs.names, keep)
    return found


class Needs:
    """
    The attributes that have to be known to say what attributes and expressions come to.

    An attribute may be an expression about others, which is seen only when it is there.
    """

    def __init__(self, texts: Sequence[str], *, evaluated: bool = True) -> None:
        """`evaluated`: whether values are wanted, and not the expressions."""
        self.names: Final = names_in(texts)
        """What is asked for at first."""
        self._evaluated = evaluated
        self._known = {name.lower() for name in self.names}
        self._seen: set[str] = set()

    def of(self, ads: Sequence[Ad]) -> list[str]:
        """Those that have not been asked for, and which expressions in these ads are about."""
        if not self._evaluated or not self.names:
            return []  # whole ads have everything
        texts = {value.expr for ad in ads for value in ad.values() if type(value) is Expr} - self._seen
        self._seen |= texts
        more = [
            name
            for name in names_in(f"({text})" for text in sorted(texts))
            if name.lower() not in self._known
        ]
        self._known.update(map(str.lower, more))
        return more


def number(ad: Mapping[str, object], name: str) -> float:
    """A numeric attribute, 0 if it is something else."""
    value = ad.get(name, 0)
    return value if isinstance(value, int | float) else 0.0
