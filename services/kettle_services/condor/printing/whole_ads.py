"""Whole ads, or some of their attributes: `-long`, `-json`, `-jsonl` and `-xml`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kettle.classad.listing import LONG, json_listing
from kettle_services.condor.printing.values import Needs
from kettle_wire.ads.types import Ad


class WholeAds:
    """A `Form` of ads that are printed without looking at what they say."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names`: of each ad only these attributes, if any are named."""
        self.needs: Needs = Needs(names, evaluated=False)
        self._keys: Final = {name.lower() for name in names}

    def begin(self) -> Iterable[str]:
        """What stands before them, also if there are none."""
        return ()

    def add(self, ads: Sequence[Ad]) -> Iterator[str]:
        """Some ads."""
        for ad in ads:
            yield self.written(
                {name: ad[name] for name in ad if name.lower() in self._keys} if self._keys else ad
            )

    def written(self, ad: Ad) -> str:
        """One ad."""
        raise NotImplementedError

    def end(self) -> Iterable[str]:
        """There are no more."""
        return ()


class _Long(WholeAds):
    """`Name = value` lines, an empty line behind each ad."""

    def written(self, ad: Ad) -> str:
        return LONG.members(ad) + "\n"


class _Json(WholeAds):
    """A list of objects, one attribute a line; nothing at all if there are no ads."""

    _MEMBERS: Final = json_listing(",\n  ")

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._before = "[\n"

    def written(self, ad: Ad) -> str:
        before, self._before = self._before, ",\n"
        return f"{before}{{\n  {self._MEMBERS.members(ad)}\n}}\n"

    def end(self) -> Iterable[str]:
        return ["]\n"] if self._before != "[\n" else []


class _JsonLines(WholeAds):
    """An object on each line."""

    _MEMBERS: Final = json_listing(", ")

    def written(self, ad: Ad) -> str:
        return f"{{{self._MEMBERS.members(ad)}}}\n"


class _Xml(WholeAds):
    """A document of ads; header and footer are there without any."""

    def begin(self) -> Iterable[str]:
        from kettle.classad.xml_form import XML_HEADER

        return [XML_HEADER]

    def written(self, ad: Ad) -> str:
        from kettle.classad import ClassAd
        from kettle.classad.xml_form import write_xml

        return write_xml(ClassAd.from_wire(ad))

    def end(self) -> Iterable[str]:
        from kettle.classad.xml_form import XML_FOOTER

        return [XML_FOOTER]


FORMS: Final[Mapping[str, Callable[[Sequence[str]], WholeAds]]] = {
    "long": _Long,
    "json": _Json,
    "jsonl": _JsonLines,
    "xml": _Xml,
}
"""By the options that ask for them."""
