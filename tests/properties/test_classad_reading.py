"""Whatever is given to a reader of ads, it answers with ads or says what is wrong and where."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import (
    ClassAd,
    ClassAdParseError,
    Form,
    NotRepresentable,
    apply_delta,
    delta,
    form_of,
    parse,
    read_ads,
    read_json,
    read_long,
    unparse,
    write_ads,
)
from kettle.classad.parser import parse_long
from kettle.classad.values import from_octets


def reader_of(form: Form) -> Callable[[str], object]:
    return lambda text: list(read_ads(text, form))


READERS: dict[str, Callable[[str], object]] = {
    "parse": parse,
    "parse_long": parse_long,
    "read_long": read_long,
    "read_json": read_json,
    "ad": ClassAd.parse,
    "auto": lambda text: list(read_ads(text)),
    **{form.value: reader_of(form) for form in Form},
}

PIECES = st.sampled_from(
    [
        "a",
        "A.b",
        "1",
        "-5",
        "0.5",
        '"s"',
        "'q'",
        "true",
        "error",
        "is",
        "+",
        "-",
        "&&",
        "?",
        ":",
        "?:",
        "=",
        "==",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        ".",
        "f(",
        "[a=",
        '"',
        "'",
        "\\",
        "//",
        "/*",
        "*/",
        "#",
        "\n",
        " ",
        "\x00",
        '{"a":',
        '"\\/Expr(',
        ')\\/"',
        "\\ud83d",
        "null",
        "<c>",
        "</c>",
        '<a n="x">',
        "</a>",
        "<i>",
        "<?xml",
        "&lt;",
        "<!",
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=25).map("".join),
    st.text(max_size=40),
    st.binary(max_size=40).map(from_octets),
    st.text(st.characters(categories=["Cs"]), max_size=3).map(lambda halves: f'a = "{halves}"'),
)


def ad_text(attributes: dict[str, str]) -> str:
    return "[" + ";".join(f"'{name}'={value}" for name, value in attributes.items()) + "]"


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
STRINGS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    st.binary(max_size=8).map(lambda data: from_octets(data.replace(b"\0", b"0"))),
).map(unparse)
SCALARS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1).map(str),
    st.integers(-999, 999).map(lambda number: f"{number}.25"),
    st.sampled_from(["true", "false", "undefined", "error", 'absTime("2003-01-25T09:00:00-06:00")', "-0.0"]),
    st.sampled_from(["x", "MY.y + 1", "(1)", " -x", "x is 2 ? f(y) : { z }", "\"a\" == 'b c'", "relTime(5)"]),
    STRINGS,
)
EXPRESSIONS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "{" + ",".join(items) + "}"),
        st.dictionaries(NAMES, inner, max_size=3).map(ad_text),
    ),
    max_leaves=6,
)


ADS = st.dictionaries(NAMES, EXPRESSIONS, max_size=5).map(
    lambda attributes: ClassAd.parse(ad_text(attributes))
)


def refusal_of(read: Callable[[str], object], text: str) -> ClassAdParseError | None:
    try:
        read(text)
    except ClassAdParseError as error:
        return error
    return None


@pytest.mark.parametrize("reader", READERS)
@given(text=TEXTS)
def test_any_text_is_read_or_refused(reader: str, text: str) -> None:
    """Nothing but ClassAdParseError is raised, and it points at a character of the text."""
    refusal = refusal_of(READERS[reader], text)
    if refusal is not None:
        lines = text.split("\n")
        assert 1 <= refusal.line <= len(lines)
        assert 1 <= refusal.column <= len(lines[refusal.line - 1]) + 1
        assert 2 == len(refusal.excerpt().split("\n"))


@given(TEXTS)
def test_reported_errors_let_reading_go_on(text: str) -> None:
    """With someone to report to, no text is refused, and what is refused otherwise is reported."""
    reported: list[ClassAdParseError] = []
    list(read_ads(text, report=reported.append))
    assert (refusal_of(READERS["auto"], text) is not None) == bool(reported)


@given(TEXTS)
def test_what_parses_is_written_once_and_for_all(text: str) -> None:
    """The text of what was read reads back as the same text."""
    if refusal_of(parse, text) is None:
        written = unparse(parse(text))
        assert written == unparse(parse(written))


@given(st.lists(ADS, max_size=3))
def test_each_form_reads_back_what_it_wrote(ads: list[ClassAd]) -> None:
    """Any ad survives any form, and the form is recognised."""
    # The forms share the examples: to make ads takes longer than to write and to read them.
    for form in (Form.NEW, Form.JSON, Form.JSON_LINES, Form.XML):
        text = "".join(write_ads(ads, form))
        assert ads == list(read_ads(text, form)), form
        if ads:
            assert form is form_of(text)
        assert ads == list(read_ads(text)), form


@given(ADS)
def test_the_long_form_reads_back_what_it_wrote_or_does_not_write_it(ad: ClassAd) -> None:
    """It has no form for some strings, and says so."""
    try:
        text = "".join(write_ads([ad], Form.LONG))
    except NotRepresentable:
        return
    assert [ad] == list(read_ads(text)) or not ad


@given(ADS, ADS)
def test_a_delta_makes_one_ad_of_the_other(before: ClassAd, after: ClassAd) -> None:
    """Applied to the first ad it gives the second, in the second's spelling; for equal ads it is empty."""
    made = apply_delta(before, delta(before, after))
    assert after == made
    assert sorted(after) == sorted(made)
    assert not delta(after, made)


MANY = 100_000
LONG = 30_000
"""As `MANY` for what is an expression: what is made of it takes as long as all the refusals together."""
HOSTILE = {
    "parentheses": "(" * MANY,
    "braces": "{" * MANY,
    "brackets": "[a=" * MANY,
    "calls": "f(" * MANY,
    "subscripts": "a[" * MANY,
    "prefixes": "-" * MANY,
    "choices": "a ? b : " * MANY,
    "nested choices": "a ? " * MANY,
    "elvis": "a ?: " * MANY,
    "quotes": '"' * (2 * MANY + 1),
    "names": "'" * (2 * MANY + 1),
    "strings": '"a" ' * MANY,
    "comments": "/*" * MANY,
    "closed comments": "/**/" * MANY,
    "slashes": "/" * MANY,
    "backslashes": "\\" * MANY,
    "escaped quotes": '"' + '\\"' * MANY,
    "digits": "9" * MANY,
    "exponent": "1e" + "9" * MANY,
    "points": "a." * LONG,
    "semicolons": "[" + ";" * MANY,
    "commas": "[" + "," * MANY,
    "blanks": " " * MANY + "$",
    "lines": "\n" * MANY + "$",
    "surrogates": '{"a": "' + "\\ud83d" * MANY,
    "objects": '{"a":' * MANY,
    "elements": "<c><a n='x'>" * MANY,
    "chain": "+".join(["1"] * LONG),
    "selections": "a" + ".b" * LONG,
    "long strings": 'a = "' + '\\"' * MANY,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_read_or_refused(text: str) -> None:
    """Neither depth nor length brings a reader down; time grows with the length and not with its square."""
    for read in READERS.values():
        refusal = refusal_of(read, text)
        assert refusal is None or refusal.at <= len(text)


def test_a_long_chain_is_written_and_compared() -> None:
    """Far more operands than Python's stack has levels pass through every form."""
    chain = "+".join(["x"] * 10_000)
    ad = ClassAd.parse(f"[a={chain}]")
    for form in Form:
        assert [ad] == list(read_ads("".join(write_ads([ad], form)), form))
    assert not delta(ad, ClassAd.parse(f"[a={chain}]"))
