"""Arguments and environments, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.submit import QuotingError, quoting

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
        ("a  b\tc", ["a", "b", "c"]),
        ("it''''s", ["it's"]),
        ("spacey' '''quoted''' 'argument", ["spacey 'quoted' argument"]),
        ("a'b c'd", ["ab cd"]),
    ],
)
def test_single_quotes_protect(raw: str, words: list[str]) -> None:
    """Quoted and unquoted parts that touch are one word."""
    assert words == quoting.split_v2(raw)


@pytest.mark.parametrize("raw", ["'", "a 'b", "a 'b'' c"])
def test_open_quotes_are_refused(raw: str) -> None:
    """A guess would run the job with other arguments than were meant."""
    with pytest.raises(QuotingError, match="never closed"):
        quoting.split_v2(raw)
