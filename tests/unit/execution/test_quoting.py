"""Argument and environment strings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.execution.job_environment.quoting import (
    QuotingError,
    join_arguments_v1,
    join_arguments_v2_raw,
    join_environment_v2_raw,
    split_arguments_v1,
    split_arguments_v2_raw,
    split_environment_v1,
    split_environment_v2_raw,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  one\ttwo  ", ["one", "two"]),
        ("'one two' three", ["one two", "three"]),
        ("a'b c'd", ["ab cd"]),
        ("'it''s'", ["it's"]),
        ("'' x", ["", "x"]),
        ("''''", ["'"]),
        ('say "hi"', ["say", '"hi"']),
    ],
)
def test_v2_words(text: str, words: list[str]) -> None:
    """Blanks separate, single quotes group, two of them inside a group are one."""
    assert words == split_arguments_v2_raw(text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
def test_v2_arguments_survive_a_round_trip(words: list[str]) -> None:
    """Every list of arguments can be written."""
    assert words == split_arguments_v2_raw(join_arguments_v2_raw(words))


def test_an_open_quote_is_refused() -> None:
    """The message says where it opens."""
    with pytest.raises(QuotingError, match="character 3"):
        split_arguments_v2_raw("a 'b")


def test_v1_has_no_quotes() -> None:
    """Quotes are ordinary characters, and a blank in a word cannot be written."""
    assert ["'a", "b'"] == split_arguments_v1("'a b'")
    with pytest.raises(QuotingError, match="no quotes"):
        join_arguments_v1(["a b"])


def test_environments() -> None:
    """V2 quotes like arguments, V1 is cut at semicolons."""
    assert {"A": "1", "B": "two words", "C": "x=y"} == split_environment_v2_raw("A=1 B='two words' C=x=y")
    assert {"A": "1 2", "B": ""} == split_environment_v1("A=1 2;B=;")
    assert {"A": "it's"} == split_environment_v2_raw(join_environment_v2_raw({"A": "it's"}))


@pytest.mark.parametrize("text", ["A", "=1", "A=1 B"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    """The message names it."""
    with pytest.raises(QuotingError, match="NAME=VALUE"):
        split_environment_v2_raw(text)
