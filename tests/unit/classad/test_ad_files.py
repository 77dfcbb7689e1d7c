import pytest

from kettle.classad import ClassAd, ClassAdParseError, Form, form_of, parse, read_ads, unparse, write_ads

ADS = [
    ClassAd({"Name": "a", "b": 1.5, "Expression": parse("x + 1")}),
    ClassAd({"z": parse("{1,[y=2]}")}),
]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", Form.LONG),
        ("a = 1\n", Form.LONG),
        ("# [\na = 1\n", Form.LONG),
        ("\n# x\n[a=1]\n[b=2]\n", Form.NEW),
        ("[\n  a = 1;\n]\n", Form.NEW),
        ("{\n [a=1],\n[b=2] }", Form.NEW),
        ("{\n}\n", Form.NEW),
        ("[]", Form.NEW),
        ("/* x */ [a=1]", Form.NEW),
        ('[\n{"a": 1}]', Form.JSON),
        ("[\n]\n", Form.JSON),
        ('{"a": 1}\n{"a": 2}\n', Form.JSON_LINES),
        ("{}\n", Form.JSON_LINES),
        ('<?xml version="1.0"?>\n<classads/>', Form.XML),
    ],
)
def test_the_beginning_tells_the_form(text: str, form: Form) -> None:
    """Blank lines and comments before it do not matter."""
    assert form is form_of(text)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_what_is_written_reads_back(form: Form, count: int) -> None:
    """In each form, also without being told which, and also no ads at all."""
    text = "".join(write_ads(ADS[:count], form))
    assert ADS[:count] == list(read_ads(text, form))
    assert ADS[:count] == list(read_ads(text))


def test_the_forms_look_like_htcondors() -> None:
    """Lists are in brackets, an ad on each line; in the long form an empty line follows each ad."""
    assert 'b = 1\n\nc = "d"\n\n' == "".join(write_ads([ClassAd({"b": 1}), ClassAd({"c": "d"})], Form.LONG))
    assert "{\n[ b = 1 ],\n[  ]\n}\n" == "".join(write_ads([ClassAd({"b": 1}), ClassAd()], Form.NEW))
    assert '[\n{"b": 1},\n{}\n]\n' == "".join(write_ads([ClassAd({"b": 1}), ClassAd()], Form.JSON))
    assert '{"b": 1}\n{}\n' == "".join(write_ads([ClassAd({"b": 1}), ClassAd()], Form.JSON_LINES))


@pytest.mark.parametrize(
    ("text", "place", "kept"),
    [
        ("a = 1\n\nb = )\nc = 1\n\nd = 1", (3, 5), ["[ a = 1 ]", "[ d = 1 ]"]),
        ("[a=1]\n[b=]\n[c=1]", (2, 4), ["[ a = 1 ]", "[ c = 1 ]"]),
        ("{\n[a=1],\n[b=],\n[c=1]\n}", (3, 4), ["[ a = 1 ]", "[ c = 1 ]"]),
        ('{"a": 1}\n{"b": }\n{"c": 1}', (2, 7), ["[ a = 1 ]", "[ c = 1 ]"]),
        ('[\n{"a": 1},\n{"b": },\n{"c": 1}\n]', (3, 7), ["[ a = 1 ]", "[ c = 1 ]"]),
        ('[{"a": 1}', (1, 10), ["[ a = 1 ]"]),
        ('[{"a": 1}] x', (1, 12), ["[ a = 1 ]"]),
    ],
)
def test_a_bad_ad_is_refused_or_reported(text: str, place: tuple[int, int], kept: list[str]) -> None:
    """The refusal names the line of the file; a report lets the other ads through."""
    with pytest.raises(ClassAdParseError) as refusal:
        list(read_ads(text))
    assert place == (refusal.value.line, refusal.value.column)
    reported: list[ClassAdParseError] = []
    assert kept == [unparse(ad) for ad in read_ads(text, report=reported.append)]
    assert [place] == [(error.line, error.column) for error in reported]


def test_history_files_have_their_delimiter() -> None:
    """A line of asterisks ends an ad there, a blank line does not."""
    text = "a = 1\n\nb = 2\n*** Offset = 0 ClusterId = 1\nc = 3\n*** Offset = 9\n"
    assert ["[ a = 1; b = 2 ]", "[ c = 3 ]"] == [unparse(ad) for ad in read_ads(text, delimiter="***")]


@pytest.mark.parametrize("form", [None, Form.LONG])
def test_lines_of_asterisks_end_ads_also_unasked(form: Form | None) -> None:
    """What such a line says is no attribute, and lines are counted as they stand in the file."""
    text = "a = 1\n*** Offset = 0 ClusterId = 1\n\nb = 2\n***\nc = 3"
    assert ["[ a = 1 ]", "[ b = 2 ]", "[ c = 3 ]"] == [unparse(ad) for ad in read_ads(text, form)]
    with pytest.raises(ClassAdParseError) as refusal:
        list(read_ads(f"{text} +", form))
    assert 6 == refusal.value.line
