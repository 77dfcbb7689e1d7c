import pytest

from kettle.classad import (
    ClassAd,
    ClassAdParseError,
    NotRepresentable,
    parse,
    read_long,
    read_long_ads,
    unparse,
    write_long,
)
from kettle.classad.long_form import list_long


def test_an_ad_is_written_sorted_one_attribute_per_line() -> None:
    """Names are sorted without regard to case; values use the old spelling."""
    ad = ClassAd({"b": 2.0, "A": 'say "x"', "c": parse("a is undefined"), "D": parse("{1,[x=1]}")})
    assert 'A = "say \\"x\\""\nb = 2.0\nc = a =?= undefined\nD = { 1,[ x = 1 ] }\n' == write_long(ad)


def test_a_backslash_is_itself_except_before_a_quote() -> None:
    """Windows paths are what they look like, even if they end in a backslash."""
    ad = read_long('A = "c:\\dir\\n"\nB = "ends with\\"\nC = "a\\\\b"\nD = "a \\"q\\" b"\n')
    expected = {"A": "c:\\dir\\n", "B": "ends with\\", "C": "a\\\\b", "D": 'a "q" b'}
    assert expected == ad.to_wire()


@pytest.mark.parametrize("line", ["A = 1 2", "A = 1 // x", "A =1 $", "  A  = 1\r"])
def test_what_follows_an_expression_is_ignored(line: str) -> None:
    """A line holds one expression; the rest, legal or not, does not matter."""
    assert "[ A = 1 ]" == unparse(read_long(line))


def test_neighbouring_strings_do_not_join() -> None:
    """The long form knows no concatenation."""
    assert {"A": "multi"} == read_long('A = "multi" "part"').to_wire()


def test_names_are_not_checked() -> None:
    """`A.B = 1` defines an attribute that is called `A.B`."""
    assert ["A.B"] == list(read_long("A.B = 1"))


def test_collections_are_parted_by_blank_lines_or_a_delimiter() -> None:
    """Comments and empty ads do not count."""
    assert ["[ a = 1 ]", "[ b = 2 ]"] == [unparse(ad) for ad in read_long_ads("# x\na = 1\n\n\nb = 2\n")]
    assert ["[ a = 1 ]", "[ b = 2 ]"] == [
        unparse(ad) for ad in read_long_ads("a = 1\n*** x = y\nb = 2\n", "***")
    ]


def test_a_bad_line_is_refused() -> None:
    """A line without an assignment, or with half of an expression, is no ad."""
    for line in ("nonsense", "A = 1 +", "= 1"):
        with pytest.raises(ClassAdParseError):
            read_long(line)


@pytest.mark.parametrize("line", ["A = 0x10", "A = 017", "A = 5.", "A = (1 2)", "A == 1", "A = @", "A = "])
def test_a_line_that_starts_badly_is_refused(line: str) -> None:
    """Only what follows a complete expression is ignored."""
    with pytest.raises(ClassAdParseError):
        read_long(line)


def test_a_refusal_names_the_line_and_the_column_in_it() -> None:
    """Both refer to the text as it was given, comments and blank lines counted."""
    with pytest.raises(ClassAdParseError) as refusal:
        read_long("# comment\n\nA = 1\n  B = 1 + + )\n")
    assert (4, 13) == (refusal.value.line, refusal.value.column)
    with pytest.raises(ClassAdParseError) as refusal:
        list(read_long_ads("A = 1\n\nB = 2\nnonsense\n"))
    assert (4, 1) == (refusal.value.line, refusal.value.column)


def test_a_bad_line_can_be_reported_instead() -> None:
    """Of its ad the attributes before it are kept, and reading goes on with the next ad."""
    reported: list[ClassAdParseError] = []
    ads = list(read_long_ads("a = 1\nb = 1 +\nc = 2\n\nd = 4", report=reported.append))
    assert ["[ a = 1 ]", "[ d = 4 ]"] == [unparse(ad) for ad in ads]
    assert [(2, 8)] == [(error.line, error.column) for error in reported]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a = -5", "-5"),
        ("a = -017", "-17"),
        ("a = 12x", "12"),
        ("a = TRUE", "true"),
        ("a = 1.5e3", "1.500000000000000E+03"),
        ("a = 9223372036854775808", "0"),
        ("a = 'b' 'c'", "b"),
        (r"a = 'b\0c'", r"'b\\0c'"),
        ('a = "é"', r'"\303\251"'),
        ("a = b // c", "b"),
    ],
)
def test_values_are_read_as_htcondor_reads_them(line: str, expected: str) -> None:
    """Literals in the old spelling, with what may follow them."""
    assert f"[ a = {expected} ]" == unparse(read_long(line))


@pytest.mark.parametrize("name", ["a=b", "#a", " a", "a\nb", ""])
def test_a_name_that_would_read_back_as_another_cannot_be_written(name: str) -> None:
    """The long form has no quotes for names."""
    with pytest.raises(NotRepresentable):
        write_long(ClassAd({name: 1}))


@pytest.mark.parametrize("value", ["two\nlines", "return\r"])
def test_a_line_break_cannot_be_written(value: str) -> None:
    """Rather no line than one that reads back as two."""
    with pytest.raises(NotRepresentable):
        write_long(ClassAd({"A": value}))


def test_a_backslash_that_would_swallow_a_quote_cannot_be_written() -> None:
    """Only the last string of a line may end in a backslash."""
    assert 'A = "ends\\"\n' == write_long(ClassAd({"A": "ends\\"}))
    with pytest.raises(NotRepresentable):
        write_long(ClassAd({"A": parse('{"ends\\\\","b"}')}))


def test_a_listing_shows_also_what_the_form_cannot_carry() -> None:
    """A line break is written with its escape, and nothing forges a line."""
    ad = ClassAd({"A": 1, "B": "x\ny", "C\nd": 2})
    assert 'A = 1\nB = "x\\ny"\n' == list_long(ad)
