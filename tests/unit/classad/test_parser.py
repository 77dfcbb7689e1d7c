import pytest

from kettle.classad import UNDEFINED, ClassAdParseError, evaluate, parse, unparse
from kettle.classad.nodes import (
    AdLiteral,
    Binary,
    Elvis,
    Literal,
    Logical,
    Reference,
    RelTimeLiteral,
    Unary,
    reference,
)


def test_precedence_is_the_languages_own() -> None:
    """Elvis binds tighter than any binary operator, unlike in other languages."""
    expected = Binary("+", Literal(1), Elvis(reference("a"), Literal(2)))
    assert expected == parse("1 + a ?: 2")


def test_and_binds_tighter_than_or() -> None:
    """A disjunction holds conjunctions."""
    a, b, c = (reference(name) for name in "abc")
    assert Logical("||", a, Logical("&&", b, c)) == parse("a || b && c")


@pytest.mark.parametrize("text", ["1-1", "a-1", '"x"-1', "(5)-1", "{7}[0]-1", "true-1"])
def test_minus_after_an_operand_subtracts(text: str) -> None:
    """A minus that follows an operand is the operator, with or without blanks."""
    node = parse(text)
    assert isinstance(node, Binary)
    assert Literal(1) == node.right


def test_minus_elsewhere_belongs_to_the_number() -> None:
    """`2*-3` holds a negative literal, `- 5` an operator."""
    assert Binary("*", Literal(2), Literal(-3)) == parse("2*-3")
    assert Unary("-", Literal(5)) == parse("- 5")


def test_literals_of_different_types_differ() -> None:
    """1, 1.0 and true are three expressions, though Python holds them equal."""
    assert len({parse("1"), parse("1.0"), parse("true")}) == 3
    assert parse("0.0") != parse("-0.0")


def test_a_literal_duration_is_a_literal_of_its_own() -> None:
    """It is equal to another spelling of as many seconds, and to no real."""
    assert RelTimeLiteral(65.0) == parse('relTime("1:05")') == parse('relTime("65")')
    assert hash(parse('relTime("1:05")')) == hash(parse('relTime("65")'))
    assert Literal(65.0) != parse('relTime("65")')
    assert parse('relTime("-0")') != parse('relTime("0")')


def test_the_order_of_attributes_does_not_matter() -> None:
    """An ad is a mapping, and so is one that is written inside of another."""
    assert parse("{[a=1; b=2]}") == parse("{[b=2; a=1]}")
    assert hash(parse("{[a=1; b=2]}")) == hash(parse("{[b=2; a=1]}"))
    assert parse("[a=1; b=2]") != parse("[a=2; b=1]")


def test_names_keep_their_spelling_and_compare_without_case() -> None:
    """The key of a reference is its lower-case name."""
    assert Reference("OpSys", "opsys") == parse("OpSys")
    assert UNDEFINED is evaluate(parse("'true'"))


def test_a_repeated_attribute_keeps_its_first_spelling() -> None:
    """The last expression wins under the first name."""
    assert AdLiteral((("A", Literal(2)),)) == parse("[A=1; a=2]")


def test_neighbouring_strings_join_unless_a_comment_parts_them() -> None:
    """`"a" "b"` is one string; with a comment in between it is no expression."""
    assert Literal("ab") == parse('"a"\n"b"')
    with pytest.raises(ClassAdParseError):
        parse('"a" /* and */ "b"')


def test_octal_escapes_make_octets() -> None:
    """Two octets that are UTF-8 are one character, one octet alone stays an octet."""
    assert Literal("é") == parse(r'"\303\251"')
    assert r'"\303"' == unparse(parse(r'"\303"'))
    assert Literal("é") == parse(r'"\303" "\251"')


@pytest.mark.parametrize(
    ("text", "sentence", "at"),
    [
        ("1 +", "expected an operand, found the end", 3),
        ("a b", "expected an operator or the end, found the name b", 2),
        ("a AND b", "expected an operator or the end, found the name AND; and is written &&", 2),
        ("{a or b}", "expected , or }, found the name or; or is written ||", 3),
        ("Not b", "expected an operator or the end, found the name b; not is written !", 4),
        ("knot b", "expected an operator or the end, found the name b", 5),
        ("x = 5", "expected an operator or the end, found =; equality is written ==", 2),
        ("[ a = 1 = 2 ]", "expected ; or ], found =; equality is written ==", 8),
        ("[ = 1 ]", "expected a name, found =", 2),
        ("5. + 1", "digits are missing behind the point", 0),
        ("x + -5.e3", "digits are missing behind the point", 5),
        ("1e", "digits are missing behind the e", 0),
        ("1.5E+", "digits are missing behind the e", 0),
        ("1 2", "expected an operator or the end, found a literal", 2),
        ("(1", "expected ), found the end", 2),
        ("{1,}", "expected an operand, found }", 3),
        ("[a=1,b=2]", "expected ; or ], found ,", 4),
        ("017", "an integer does not start with 0", 0),
        ('x == "abc', "the string has no end", 5),
        ("x + 'abc", "the quoted name has no end", 4),
        ("1 /* x", "comment without an end", 2),
        ("1 # 2", "unexpected '#'", 2),
        ('absTime("soon")', "'soon' is not a time", 7),
        (r'"a\0b"', "a string cannot hold a zero octet", 0),
    ],
)
def test_a_refusal_says_what_and_where(text: str, sentence: str, at: int) -> None:
    """A parse error carries a sentence and the offset of the offending character."""
    with pytest.raises(ClassAdParseError) as refusal:
        parse(text)
    assert (sentence, at, text) == (refusal.value.sentence, refusal.value.at, refusal.value.text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-01", "-1"),
        ("-00", "0"),
        ("-017", "-17"),
        ("-0x10", "0"),
        ("-0x1.8", "-1.500000000000000E+00"),
        ("0x10.5", "1.631250000000000E+01"),
        ("-0x1.8e2", "-1.555175781250000E+00"),
        ("1-0x1.8", "1 - 1.500000000000000E+00"),
        ("-0x1e+2", "0 + 2"),
        ("'a' 'b'", "ab"),
        ("x.'a' 'b'", "x.ab"),
        ("'absTime'(\"2003-01-25\")", 'absTime("2003-01-25T00:00:00-00:00")'),
        ("IsNt IS is", ""),
        ("a IsNt b", "a isnt b"),
        ("error.x", "error.x"),
        ("f (1)", "f(1)"),
        (r'"\0" "1.10"', r'"\001.10"'),
        ("x..a", "x.a"),
        ("..a.b", ".a.b"),
        ("..5", "0.0"),
        ("MY.parent", "MY.parent"),
    ],
)
def test_what_no_one_writes_is_read_as_htcondor_reads_it(text: str, expected: str) -> None:
    """The reference accepts some texts that mean nothing; so do we, with the same meaning."""
    try:
        assert expected == unparse(parse(text))
    except ClassAdParseError:
        assert not expected


@pytest.mark.parametrize(
    "text",
    [
        "x...a",
        "x. .a",
        "x..5",
        r'"x" "\0"',
        "[;]",
        "[ ; ; ]",
        "['' = 1]",
        "-09",
        "- 01",
        "1-01",
        "0x10",
        "-0x",
        "-0x1.ff",
        "a.true",
        "a.b(1)",
        "true(1)",
        "'a' /**/ 'b'",
        "a ? /**/ : b",
        "x ?: !y",
        "f(a,)",
        "f(;a)",
        "5.",
        "1.5e",
        "12abc",
        "[a==1]",
        "'a\\0b'",
        "",
    ],
)
def test_what_htcondor_refuses_is_refused(text: str) -> None:
    """Each of these is a parse error to the reference."""
    with pytest.raises(ClassAdParseError):
        parse(text)


LEVELS = [
    ("?:".join(["a"] * 498), True),
    ("?:".join(["a"] * 499), False),
    ("!" * 497 + "a", True),
    ("!" * 498 + "a", False),
    ("(" * 165 + "a" + ")" * 165, True),
    ("(" * 166 + "a" + ")" * 166, False),
    ("{" * 166 + "}" * 166, True),
    ("{" * 167 + "}" * 167, False),
    ("!(" * 124 + "a" + ")" * 124, True),
    ("!(" * 125 + "a" + ")" * 125, False),
    ("a?b:" * 497 + "c", True),
    ("a?b:" * 498 + "c", False),
    ("a?" * 497 + "b" + ":c" * 497, True),
    ("a?" * 498 + "b" + ":c" * 498, False),
]


@pytest.mark.parametrize(("text", "parses"), LEVELS, ids=[f"{text[:4]} {len(text)}" for text, _ in LEVELS])
def test_nesting_has_htcondors_limits(text: str, parses: bool) -> None:
    """
    Brackets cost three of 500 levels, a prefix, a choice and an elvis one each; what is read can be written.
    """
    if parses:
        assert parse(text) == parse(unparse(parse(text)))
    else:
        with pytest.raises(ClassAdParseError, match="nested too deeply"):
            parse(text)


def test_a_refusal_says_the_line_and_the_column() -> None:
    """Both count from 1, and the excerpt has a caret below the offending character."""
    with pytest.raises(ClassAdParseError, match="line 2, column 10") as refusal:
        parse("a &&\n  b\t++ c d\n || e")
    assert (2, 10) == (refusal.value.line, refusal.value.column)
    assert "  b ++ c d\n         ^" == refusal.value.excerpt()


def test_an_excerpt_of_a_long_line_is_short() -> None:
    """The part of the line around the offending character is shown."""
    with pytest.raises(ClassAdParseError) as refusal:
        parse("x" * 500 + " y " + "z" * 500)
    shown, caret = refusal.value.excerpt(20).split("\n")
    assert (20, "y") == (len(shown), shown[caret.index("^")])


@pytest.mark.slow
def test_chains_longer_than_pythons_stack_are_compared_and_hashed() -> None:
    """Thirty thousand operands are one tree like any other."""
    one, other = (parse("+".join(["1"] * 30_000)) for _ in range(2))
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert one != parse("+".join(["1"] * 30_001))


def test_the_same_text_is_parsed_once() -> None:
    """Thousands of ads with the same Requirements share one tree."""
    assert parse("Memory >= 1024") is parse("Memory >= 1024")
