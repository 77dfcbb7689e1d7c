"""
The ads of events as text: as XML, as JSON, and as the lines of event 028.

What no form can carry is left out: a log does not end for what somebody has written into an ad.
"""

from collections.abc import Iterator

from kettle.userlog.formats import Form
from kettle_wire.ads.types import Ad


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.splitlines()) if len(text.splitlines()) > 1 else text.rstrip("\r\n")


def document(ad: Ad, form: Form) -> str:
    """One event, an attribute a line; its first and its last line, and no others, stand at the margin."""
    if form is Form.XML:
        return f"<c>\n{''.join(text for text in _carried(ad, form))}</c>\n"
    members = (f"  {text}" for text in _carried(ad, form))
    return "{\n" + ",\n".join(members) + "\n}\n"


def long_lines(ad: Ad) -> list[str]:
    """`Name = value` for each attribute."""
    return list(_carried(ad, Form.CLASSIC))


def _carried(ad: Ad, form: Form) -> Iterator[str]:
    """Each attribute as the form has it, but for those that it cannot carry."""
    from kettle.classad import ClassAd, write_json, write_long
    from kettle.classad.errors import NotRepresentable
    from kettle.classad.xml_form import write_xml

    for name, value in ad.items():
        member = ClassAd.from_wire({name: one_line(value) if isinstance(value, str) else value})
        try:
            match form:
                case Form.XML:
                    yield write_xml(member).removeprefix("<c>\n").removesuffix("</c>\n")
                case Form.JSON:
                    yield write_json(member)[1:-1]
                case Form.CLASSIC:
                    yield write_long(member).rstrip("\n")
        except NotRepresentable:
            continue
