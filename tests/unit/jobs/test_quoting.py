"""Arguments and environments, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.jobs import quoting
from kettle.jobs.quoting import QuotingError

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5)


@given(WORDS)
def test_words_survive(words: list[str]) -> None:
    """Whatever the words are, the raw text has them all again."""
    assert words == quoting.split_v2(quoting.join_v2(words))


@given(WORDS)
def test_words_survive_a_description(words: list[str]) -> None:
    """They also do with the double quotes of a description around them."""
    text = '"' + quoting.join_v2(words).replace('"', '""') + '"'
    assert words == quoting.split_v2(quoting.unquote_v2(text))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("", []),
        ("''", [""]),
        ("'' x", ["", "x"]),
        ("a  b\tc", ["a", "b", "c"]),
        ("  one\ttwo  ", ["one", "two"]),
        ("'one two' three", ["one two", "three"]),
        ("it''''s", ["it's"]),
        ("'it''s'", ["it's"]),
        ("''''", ["'"]),
        ('say "hi"', ["say", '"hi"']),
        ("spacey' '''quoted''' 'argument", ["spacey 'quoted' argument"]),
        ("a'b c'd", ["ab cd"]),
    ],
)
def test_single_quotes_protect(raw: str, words: list[str]) -> None:
    """Quoted and unquoted parts that touch are one word; of two quotes inside of quotes one is left."""
    assert words == quoting.split_v2(raw)


@pytest.mark.parametrize(("raw", "character"), [("'", 1), ("a 'b", 3), ("a 'b'' c", 3), ("a'b'' c", 2)])
def test_open_quotes_are_refused(raw: str, character: int) -> None:
    """A guess would run the job with other arguments; the sentence says where the quote opens."""
    with pytest.raises(QuotingError, match=f"at character {character} of {raw} is never closed"):
        quoting.split_v2(raw)


def test_the_old_syntax_has_no_quotes() -> None:
    """Quotes are ordinary characters."""
    assert ["'a", "b'"] == quoting.split_v1("'a b'")


def test_environments() -> None:
    """The new syntax quotes like arguments, the old one is cut at its delimiter."""
    raw = "A=1 B='two words' C=x=y"
    assert {"A": "1", "B": "two words", "C": "x=y"} == quoting.environment_of(quoting.split_v2(raw))
    assert ["A=1 2 ", "B="] == quoting.split_environment_v1("A=1 2 ; B=;")
    assert ["A=1;2", "B="] == quoting.split_environment_v1("A=1;2| B=", "|")
    assert ["A=1 2", "B="] == quoting.described_environment_v1("A=1 2 ; B=;")


@pytest.mark.parametrize("entry", ["A", "=1"])
def test_what_is_no_assignment_is_refused(entry: str) -> None:
    """The message names it."""
    with pytest.raises(QuotingError, match=f"'{entry}' is not NAME=value"):
        quoting.environment_of(["B=1", entry])
