"""Whole ads: `-long`, `-json` and `-xml`."""

from collections.abc import Iterable, Iterator, Sequence

from kettle_wire.ads.types import Ad


def long(ads: Iterable[Ad]) -> Iterator[str]:
    """`Name = value` lines, an empty line behind each ad."""
    from kettle.classad import ClassAd
    from kettle.classad.long_form import list_long

    for ad in ads:
        yield list_long(ClassAd.from_wire(ad)) + "\n"


def json(ads: Sequence[Ad]) -> Iterator[str]:
    """A list of objects, one attribute a line; nothing at all if there are no ads."""
    from kettle.classad import ClassAd, write_json

    before = "[\n"
    for ad in ads:
        members = [
            write_json(ClassAd.from_wire({name: ad[name]}))[1:-1] for name in sorted(ad, key=str.lower)
        ]
        yield before + "{\n  " + ",\n  ".join(members) + "\n}\n"
        before = ",\n"
    if ads:
        yield "]\n"


def xml(ads: Iterable[Ad]) -> Iterator[str]:
    """A document of ads; header and footer are there without any."""
    from kettle.classad import ClassAd
    from kettle.classad.xml_form import XML_FOOTER, XML_HEADER, write_xml

    yield XML_HEADER
    for ad in ads:
        yield write_xml(ClassAd.from_wire(ad))
    yield XML_FOOTER


def chosen(ad: Ad, names: Sequence[str]) -> Ad:
    """The attributes of an ad that are wanted, all if none is named."""
    if not names:
        return ad
    keys = {name.lower() for name in names}
    return {name: value for name, value in ad.items() if name.lower() in keys}
