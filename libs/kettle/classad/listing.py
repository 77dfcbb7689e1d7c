"""
Listings of ads as they travel, in the long form and as JSON: there may be very many of them.

What ads of one shape have in common, those that have the same names with values of the same kinds, is worked out once;
writing one of them is then little more than one operation.  Only values that are not plain load the language.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from kettle_wire.ads.types import Ad, Scalar

_REMEMBERED: Final = 16_384
"""Members of ads whose text is kept: expressions come again with every job of a cluster."""
_SHAPES: Final = 256
_CONTROLS: Final = bytes(range(32)) + b'"\\'
_NOT_IN_JSON: Final = re.compile(r'[\x00-\x1f"\\\udc80-\udcff]')


class _Shape(NamedTuple):
    """Ads that have these names, with values of these kinds."""

    layout: str
    """A conversion for each value, with all that stands around them."""
    names: tuple[str, ...]
    """In the order of the layout."""
    values: Callable[[Ad], Iterable[Scalar]]
    """The values of an ad, in the order of the layout."""
    texts: tuple[int, ...]
    """Which values are strings that stand between quotes."""
    others: tuple[int, ...]
    """In the place of which values their whole members stand."""


class Listing:
    """A form in which the members of an ad stand one after the other."""

    def __init__(
        self,
        member: Callable[[str, Scalar], str],
        *,
        plain: tuple[str, str],
        is_plain: Callable[[str], bool],
        between: str = "",
        order: Callable[[str], Any] = str.lower,
    ) -> None:
        """
        `member` writes anything, if need be as nothing; but whole numbers, and strings that are plain, stand between the
        two texts `plain`, of which the first has a place for the name.  `order`: of the members, by their names.
        """
        self._kept: Final = lru_cache(maxsize=_REMEMBERED, typed=True)(member)

        def real(name: str, digits: str) -> str:
            return member(name, float(digits))

        self._real: Final = lru_cache(maxsize=_REMEMBERED)(real)
        self._plain: Final = plain
        self._is_plain: Final = is_plain
        self._between: Final = between
        self._order: Final = order
        self._shape: Final = lru_cache(maxsize=_SHAPES)(self._new_shape)

    def members(self, ad: Ad) -> str:
        """All members of an ad."""
        layout, names, values_of, texts, others = self._shape(tuple(ad), tuple(map(type, ad.values())))
        values: list[Any] = list(values_of(ad))
        if texts and not self._is_plain("".join([values[at] for at in texts])):
            members = map(self._member, names, values)
            return self._between.join(filter(None, members))
        for at in others:
            values[at] = self._member(names[at], values[at])
        return layout % tuple(values)

    def _member(self, name: str, value: Scalar) -> str:
        if type(value) is float:  # known by its digits, because -0.0 equals 0.0
            return self._real(name, repr(value))
        return self._kept(name, value)

    def _new_shape(self, names: tuple[str, ...], kinds: tuple[type, ...]) -> _Shape:
        kind_of = dict(zip(names, kinds, strict=True))
        distinct = {name.lower(): name for name in names}.values()
        ordered = tuple(sorted(distinct, key=self._order))
        named = [name.isascii() and name.isidentifier() for name in ordered]
        texts = [at for at, name in enumerate(ordered) if named[at] and kind_of[name] is str]
        numbers = [at for at, name in enumerate(ordered) if named[at] and kind_of[name] is int]
        before, behind = self._plain
        conversions = dict.fromkeys(range(len(ordered)), "%s")
        for at in (*texts, *numbers):
            conversion = '"%s"' if kind_of[ordered[at]] is str else "%d"
            conversions[at] = f"{before % ordered[at]}{conversion}{behind}"

        def few(ad: Ad) -> list[Scalar]:
            return [ad[name] for name in ordered]

        return _Shape(
            layout=self._between.join(conversions.values()),
            names=ordered,
            values=itemgetter(*ordered) if len(ordered) > 1 else few,
            texts=tuple(texts),
            others=tuple(at for at, text in conversions.items() if text == "%s"),
        )


def _long_member(name: str, value: Scalar) -> str:
    from kettle.classad.ad import ClassAd
    from kettle.classad.long_form import list_long

    return list_long(ClassAd.from_wire({name: value}))


def json_member(name: str, value: Scalar) -> str:
    """Any member of a JSON object, as `kettle.classad.write_json` writes it."""
    from kettle.classad.ad import ClassAd
    from kettle.classad.json_form import write_json

    return write_json(ClassAd.from_wire({name: value}))[1:-1]


def _is_plain_long(text: str) -> bool:
    return not ('"' in text or "\\" in text or "\n" in text or "\r" in text)


def _is_plain_json(text: str) -> bool:
    if text.isascii():
        return len(text.encode().translate(None, _CONTROLS)) == len(text)
    return _NOT_IN_JSON.search(text) is None


LONG: Final = Listing(_long_member, plain=("%s = ", "\n"), is_plain=_is_plain_long)
"""`Name = value` lines, sorted by name, as `kettle.classad.long_form.list_long` writes them."""


def json_listing(
    between: str,
    *,
    member: Callable[[str, Scalar], str] = json_member,
    order: Callable[[str], Any] = str.lower,
) -> Listing:
    """Members of JSON objects; `between` stands between them."""
    return Listing(member, plain=('"%s": ', ""), is_plain=_is_plain_json, between=between, order=order)
