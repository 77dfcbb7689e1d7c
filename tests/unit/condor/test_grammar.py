"""HTCondor's grammar of options."""

import pytest

from kettle_services.condor.arguments.grammar import (
    ALL,
    Option,
    TypedOption,
    understood,
    understood_before,
    whole_number,
)
from kettle_services.condor.errors import WordsError

OPTIONS = {
    "autoformat": Option(takes=ALL, letters=True, also=("af",)),
    "constraint": Option(takes=1, also=("c",)),
    "format": Option(takes=2),
    "name": Option(takes=1),
    "nobatch": Option(),
    "terse": Option(),
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-const", "x"], [TypedOption("constraint", ("x",))]),
        (["-c", "x"], [TypedOption("constraint", ("x",))]),
        (["-CONSTRAINT", "-5"], [TypedOption("constraint", ("-5",))]),
        (["--terse", "-ters"], [TypedOption("terse", ()), TypedOption("terse", ())]),
        (
            ["-af:jr", "A", "B", "-nob"],
            [TypedOption("autoformat", ("A", "B"), "jr"), TypedOption("nobatch", ())],
        ),
        (
            ["12", "-format", "%d", "-x", "-"],
            [TypedOption("", ("12",)), TypedOption("format", ("%d", "-x")), TypedOption("", ("-",))],
        ),
        ([], []),
    ],
)
def test_options_are_understood(words: list[str], expected: list[TypedOption]) -> None:
    """Short after one dash, whole after two, with what they take."""
    assert expected == understood(words, OPTIONS)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-n"], "-n may mean each of -name, -nobatch"),
        (["--ters"], "Unrecognized argument --ters"),
        (["-x"], "Unrecognized argument -x"),
        (["--"], "Unrecognized argument --"),
        (["-terse:x"], "Unrecognized argument -terse:x"),
        (["-format", "%d"], "-format requires another parameter"),
        (["-af", "-terse"], "-af requires another parameter"),
    ],
)
def test_what_is_no_option_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(WordsError, match=sentence.replace("-", r"\-")):
        understood(words, OPTIONS)


def test_a_number_is_a_number() -> None:
    assert 12 == whole_number(TypedOption("limit", ("12",)))
    for word in ("x", "-1", "1.5", "", "1" + "0" * 20, "٣"):
        with pytest.raises(WordsError, match=f"-limit requires a number, not '{word}'"):
            whole_number(TypedOption("limit", (word,)))


def test_what_another_program_takes_is_left_as_it_is() -> None:
    """Options end at the first word: what is behind it may begin with a dash."""
    found = understood_before(["-terse", "-name", "x", "12.3", "ls", "-l", "-name"], OPTIONS)
    assert ([TypedOption("terse", ()), TypedOption("name", ("x",))], ["12.3", "ls", "-l", "-name"]) == found
    assert ([], []) == understood_before([], OPTIONS)
    assert ([], ["-"]) == understood_before(["-"], OPTIONS)
    with pytest.raises(WordsError, match="Unrecognized argument -x"):
        understood_before(["-x", "12.3"], OPTIONS)
