import pytest

from kettle.classad import ClassAd, ClassAdParseError, NotRepresentable, read_json, unparse, write_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("undefined", "null"),
        ("true", "true"),
        ("-5", "-5"),
        ("1.5", "1.5"),
        ("2.0", "2.0"),
        ("1e100", "1E+100"),
        ("-0.0", "-0.0"),
        (
            r'"b\b f\f n\n r\r t\t \\ \" / \001 \177 \303\251"',
            r'"b\b f\f n\n r\r t\t \\ \" / \u0001 ' + '\x7f é"',
        ),
        ("{ 1,{  },[  ] }", "[1, [], {}]"),
        ("[bb=1; A=x]", r'{"A": "\/Expr(x)\/", "bb": 1}'),
        ("(1)", r'"\/Expr((1))\/"'),
        ('a is "b"', r'"\/Expr(a is \"b\")\/"'),
        ("error", r'"\/Expr(error)\/"'),
        ("1e400", r'"\/Expr(real(\"INF\"))\/"'),
        ('absTime("2003-01-25T09:00:00-06:00")', r'"\/Expr(absTime(\"2003-01-25T09:00:00-06:00\"))\/"'),
        ('relTime("5")', "5.0"),
        ('{ relTime("1:01.5") }', "[61.5]"),
        ('-relTime("5")', r'"\/Expr( -relTime(\"05\"))\/"'),
        ('"/Expr(a)/"', '"/Expr(a)/"'),
    ],
)
def test_each_kind_of_value_has_its_form(value: str, expected: str) -> None:
    """What JSON knows is written as itself, everything else as an expression with escaped slashes."""
    assert f'{{"v": {expected}}}' == write_json(ClassAd.parse(f"[v={value}]"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            r'{"a": "\/Expr(b + 1)\/", "c": "/Expr(b)/", "d": "\/Expr(b)/"}',
            '[ a = b + 1; c = "/Expr(b)/"; d = "/Expr(b)/" ]',
        ),
        (r'{"a": "\/eXPR(\"x\")\/"}', '[ a = "x" ]'),
        ('{"a": 1,, "b": [1,, 2,],}', "[ a = 1; b = { 1,2 } ]"),
        ('{,"A": 1, "a": 2}', "[ A = 2 ]"),
        (r'{"a": "\ud83d\ude00 \u00e9 \/"}', r'[ a = "\360\237\230\200 \303\251 /" ]'),
        ('{"a": 1.5E3, "b": -2e-1}', "[ a = 1.500000000000000E+03; b = -2.000000000000000E-01 ]"),
        ('{"a": 9223372036854775808}', "[ a = 0 ]"),
        ('{"a b": {"c": null}}', "[ 'a b' = [ c = undefined ] ]"),
    ],
)
def test_json_is_read(text: str, expected: str) -> None:
    """Only escaped slashes make an expression; commas too many and repeated names do not matter."""
    assert expected == unparse(read_json(text))


@pytest.mark.parametrize(
    ("text", "sentence", "column"),
    [
        ("", "expected {", 1),
        ('{"a": 1} 2', "expected the end", 10),
        ('{"a": 1 "b": 2}', "expected , or }", 9),
        ('{"a" 1}', "expected :", 6),
        ("{1: 1}", "expected a name", 2),
        ('{"a": }', "expected a value", 7),
        ('{"a": 01}', "unexpected '0'", 7),
        ('{"a": nul}', "unexpected 'n'", 7),
        ('{"a": "x', "string without an end", 7),
        (r'{"a": "\q"}', r"'\\q' is no escape of JSON", 7),
        (r'{"a": "\ud83d"}', "a string cannot hold half of a surrogate pair", 7),
        (r'{"a": "\u0000"}', "a string cannot hold a zero octet", 7),
        (r'{"a": "\/Expr(1 +)\/"}', "expected an operand, found the end in an expression", 7),
        ('{"a": ' * 200, "the ad is nested too deeply", 997),
    ],
)
def test_what_is_no_ad_is_refused(text: str, sentence: str, column: int) -> None:
    """A refusal says what is wrong and where; a bad expression fails the ad."""
    with pytest.raises(ClassAdParseError) as refusal:
        read_json(text)
    assert (sentence, 1, column) == (refusal.value.sentence, refusal.value.line, refusal.value.column)


def test_octets_that_are_no_characters_are_an_expression() -> None:
    """
    JSON is text: such a string is written with escapes of the language, and reads back as it was; so it does raw.
    """
    ad = ClassAd.parse(r"""[a="\377z"; b={"\351\303\251"}; c=['\377'=1]; d="\303\251"]""")
    members = [
        r'"a": "\/Expr(\"\\377z\")\/"',
        r'"b": ["\/Expr(\"\\351\\303\\251\")\/"]',
        r'''"c": "\/Expr([ '\\377' = 1 ])\/"''',
        '"d": "é"',
    ]
    assert f"{{{', '.join(members)}}}" == write_json(ad)
    assert ad == read_json(write_json(ad))
    assert ClassAd({"a": "\udcffz"}) == read_json('{"a": "\udcffz"}')


def test_a_name_that_is_no_text_is_refused() -> None:
    """An attribute's name cannot be an expression."""
    with pytest.raises(NotRepresentable, match="is no name that JSON can carry"):
        write_json(ClassAd({"\udcff": 1}))
