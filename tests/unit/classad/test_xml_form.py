import re

import pytest

from kettle.classad import (
    ClassAd,
    ClassAdParseError,
    Form,
    NotRepresentable,
    RelTime,
    parse,
    read_ads,
    unparse,
    write_ads,
)
from kettle.classad.xml_form import XML_FOOTER, XML_HEADER


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5", "<i>5</i>"),
        ("1.5", "<r>1.500000000000000E+00</r>"),
        ("-1e400", "<r>-INF</r>"),
        ('"a<&>\\"b"', '<s>a&lt;&amp;&gt;"b</s>'),
        ("true", '<b v="t"/>'),
        ("false", '<b v="f"/>'),
        ("undefined", "<un/>"),
        ("error", "<er/>"),
        ('absTime("2003-01-25T09:00:00-06:00")', "<at>2003-01-25T09:00:00-06:00</at>"),
        ("{ 1,a < b }", "<l><i>1</i><e>a &lt; b</e></l>"),
        ("[x=1]", '<c>\n        <a n="x"><i>1</i></a>\n    </c>'),
        (r'"\001"', r'<e>"\001"</e>'),
        (r'"\351"', r'<e>"\351"</e>'),
        (r'"line\rend"', r'<e>"line\rend"</e>'),
    ],
)
def test_each_kind_of_value_has_its_element(value: str, expected: str) -> None:
    """What is written reads back; a string that XML cannot carry is written as an expression."""
    ad = ClassAd.parse(f"[v={value}]")
    text = "".join(write_ads([ad], Form.XML))
    assert f'{XML_HEADER}<c>\n    <a n="v">{expected}</a>\n</c>\n{XML_FOOTER}' == text
    assert [ad] == list(read_ads(text))


def test_a_duration_has_its_element_and_is_read_as_a_literal() -> None:
    """
    A literal duration is written as the real that it stands for, as in JSON; one that was computed as itself.
    """
    ad = ClassAd({"a": parse('relTime("1:05")'), "b": RelTime(65), "c": parse("relTime(65)")})
    text = "".join(write_ads([ad], Form.XML))
    assert ["<r>6.500000000000000E+01</r>", "<rt>01:05</rt>", "<e>relTime(65)</e>"] == re.findall(
        r"<[rte]+>.*?</[rte]+>", text
    )
    (back,) = read_ads(text)
    assert '[ a = 6.500000000000000E+01; b = relTime("01:05"); c = relTime(65) ]' == unparse(back)


def test_nothing_is_a_document_too() -> None:
    """Header and footer are there without any ad between them."""
    text = "".join(write_ads([], Form.XML))
    assert XML_HEADER + XML_FOOTER == text
    assert [] == list(read_ads(text))


def test_a_name_is_quoted_or_refused() -> None:
    """Quotes in a name are written as an entity; a line break has no form."""
    ad = ClassAd({'a"<b': 1})
    assert [ad] == list(read_ads("".join(write_ads([ad], Form.XML))))
    with pytest.raises(NotRepresentable):
        list(write_ads([ClassAd({"a\nb": 1})], Form.XML))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('<!DOCTYPE c [<!ENTITY a "b">]><c/>', "entities are neither declared nor used here"),
        (
            '<!DOCTYPE c SYSTEM "x"><c><a n="x"><s>&foo;</s></a></c>',
            "entities are neither declared nor used here",
        ),
        ("<c><a n='x'>" * 200, "the ad is nested too deeply"),
        ("<c><b/></c>", "no <b> belongs here"),
        ("<i>1</i>", "no <i> belongs here"),
        ("<c>x</c>", "text belongs into an element of its own"),
        ("<c><a><i>1</i></a></c>", "an attribute has a name and one value"),
        ("<c><a n='x'/></c>", "an attribute has a name and one value"),
        ("<c><a n='x'><i>1</i><i>2</i></a></c>", "an attribute has a name and one value"),
        ("<c><a n='x'><i>one</i></a></c>", "'one' is no value of <i>"),
        ("<c><a n='x'><r>1_0</r></a></c>", "'1_0' is no value of <r>"),
        ("<c><a n='x'><at>soon</at></a></c>", "'soon' is no value of <at>"),
        ("<c><a n='x'><b v='y'/></a></c>", "a boolean is t or f"),
        ("<c><a n='x'><e>1 +</e></a></c>", "expected an operand, found the end in an expression"),
        ("<c>", "no XML: no element found"),
        ("<c></d>", "no XML: mismatched tag"),
    ],
)
def test_what_is_no_document_of_ads_is_refused(text: str, sentence: str) -> None:
    """Entities are refused however harmless, and so is everything that has no place."""
    with pytest.raises(ClassAdParseError) as refusal:
        list(read_ads(text, Form.XML))
    assert sentence == refusal.value.sentence


def test_a_refusal_names_the_line_of_the_file() -> None:
    """Lines before the document count, and characters of several octets count once."""
    with pytest.raises(ClassAdParseError) as refusal:
        list(read_ads("# first\n<c>\n<a n='é'><b v='y'/></a></c>"))
    assert (3, 10) == (refusal.value.line, refusal.value.column)


def test_ads_before_an_error_are_kept_if_it_is_reported() -> None:
    """The rest of the document is not read."""
    reported: list[ClassAdParseError] = []
    text = "<classads><c><a n='x'><i>5</i></a></c><c><b/></c><c/></classads>"
    assert ["[ x = 5 ]"] == [unparse(ad) for ad in read_ads(text, report=reported.append)]
    assert ["no <b> belongs here"] == [error.sentence for error in reported]
