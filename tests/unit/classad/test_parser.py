import pytest

from kettle.classad import UNDEFINED, ClassAdParseError, evaluate, parse, unparse
from kettle.classad.nodes import AdLiteral, Binary, Elvis, Literal, Logical, Reference, Unary, reference


def test_precedence_is_the_languages_own() -> None:
    """
    Elvis binds tighter than any binary operator, unlike in other languages.
    """
    expected = Binary("+", Literal(1), Elvis(reference("a"), Literal(2)))
    assert expected == parse("1 + a ?: 2")


def test_and_binds_tighter_than_or() -> None:
    """
    A disjunction holds conjunctions.
    """
    a, b, c = (reference(name) for name in "abc")
    assert Logical("||", a, Logical("&&", b, c)) == parse("a || b && c")


@pytest.mark.parametrize("text", ["1-1", "a-1", '"x"-1', "(5)-1", "{7}[0]-1", "true-1"])
def test_minus_after_an_operand_subtracts(text: str) -> None:
    """
    A minus that follows an operand is the operator, with or without blanks.
    """
    node = parse(text)
    assert isinstance(node, Binary)
    assert Literal(1) == node.right


def test_minus_elsewhere_belongs_to_the_number() -> None:
    """
    `2*-3` holds a negative literal, `- 5` an operator.
    """
    assert Binary("*", Literal(2), Literal(-3)) == parse("2*-3")
    assert Unary("-", Literal(5)) == parse("- 5")


def test_literals_of_different_types_differ() -> None:
    """
    1, 1.0 and true are three expressions, though Python holds them equal.
    """
    assert len({parse("1"), parse("1.0"), parse("true")}) == 3
    assert parse("0.0") != parse("-0.0")


def test_names_keep_their_spelling_and_compare_without_case() -> None:
    """
    The key of a reference is its lower-case name.
    """
    assert Reference("OpSys", "opsys") == parse("OpSys")
    assert UNDEFINED is evaluate(parse("'true'"))


def test_a_repeated_attribute_keeps_its_first_spelling() -> None:
    """
    The last expression wins under the first name.
    """
    assert AdLiteral((("A", Literal(2)),)) == parse("[A=1; a=2]")


def test_neighbouring_strings_join_unless_a_comment_parts_them() -> None:
    """
    `"a" "b"` is one string; with a comment in between it is no expression.
    """
    assert Literal("ab") == parse('"a"\n"b"')
    with pytest.raises(ClassAdParseError):
        parse('"a" /* and */ "b"')


def test_octal_escapes_make_octets() -> None:
    """
    Two octets that are UTF-8 are one character, one octet alone stays an octet.
    """
    assert Literal("é") == parse(r'"\303\251"')
    assert r'"\303"' == unparse(parse(r'"\303"'))
    assert Literal("é") == parse(r'"\303" "\251"')


@pytest.mark.parametrize(
    ("text", "sentence", "at"),
    [
        ("1 +", "expected an operand, found the end", 3),
        ("a b", "expected an operator or the end, found name", 2),
        ("(1", "expected ), found the end", 2),
        ("{1,}", "expected an operand, found }", 3),
        ("[a=1,b=2]", "expected ; or ], found ,", 4),
        ("017", "an integer does not start with 0", 0),
        ('x == "abc', "literal without an end", 5),
        ("1 /* x", "comment without an end", 2),
        ("1 # 2", "unexpected '#'", 2),
        ('absTime("soon")', "'soon' is not a time", 7),
        (r'"a\0b"', "a string cannot hold a zero octet", 0),
    ],
)
def test_a_refusal_says_what_and_where(text: str, sentence: str, at: int) -> None:
    """
    A parse error carries a sentence and the offset of the offending character.
    """
    with pytest.raises(ClassAdParseError) as refusal:
        parse(text)
    assert (sentence, at, text) == (refusal.value.sentence, refusal.value.at, refusal.value.text)


def test_the_same_text_is_parsed_once() -> None:
    """
    Thousands of ads with the same Requirements share one tree.
    """
    assert parse("Memory >= 1024") is parse("Memory >= 1024")
