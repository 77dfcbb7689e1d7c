"""What people get to see."""

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.classad import ClassAd, write_json
from kettle.terminal.quantities import counted, duration, run_time, size
from kettle_services.cli.output.ads_as_json import JsonArray, plain
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads.types import Ad, Expr

_NAMES = st.text("abAB1", min_size=1, max_size=2).filter(lambda name: not name[0].isdecimal())
_INTEGERS = st.integers(-(2**63), 2**63 - 1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(out: io.StringIO, **environ: str) -> Screen:
    return Screen(out=out, err=io.StringIO(), environ=environ)


def test_tables_are_aligned() -> None:
    """Columns line up, numbers at their right ends, without blanks at the ends of lines."""
    out = io.StringIO()
    screen(out).table(("NAME", "N", "WHAT"), [("a", 1, "x"), ("bbbbb", 10, "")], right=frozenset({"N"}))
    assert "NAME    N  WHAT\na       1  x\nbbbbb  10\n" == out.getvalue()


def test_colours_are_for_terminals() -> None:
    """A pipe gets none, nor does anybody who asks for none."""
    assert "x" == screen(io.StringIO()).paint("x", "held")
    assert "\x1b[31mx\x1b[0m" == screen(Terminal()).paint("x", "held")
    assert "x" == screen(Terminal(), NO_COLOR="1").paint("x", "held")
    assert "x" == screen(Terminal(), TERM="dumb").paint("x", "held")
    assert "x" == screen(Terminal(), KETTLE_COLOR="never").paint("x", "held")
    assert "x" != screen(io.StringIO(), KETTLE_COLOR="always").paint("x", "held")


def test_a_terminal_gets_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long row is cut there, and nowhere else."""
    monkeypatch.setenv("COLUMNS", "10")
    for out, expected in ((Terminal(), "abcdefghi…"), (io.StringIO(), "abcdefghijklmn")):
        screen(out, NO_COLOR="1").table(("A",), [("abcdefghijklmn",)])
        assert expected == out.getvalue().splitlines()[1]


def test_ads_as_json() -> None:
    """An expression can be told from a string."""
    written = plain({"A": 1, "B": Expr("x + 1"), "C": "/Expr(x)/"})
    assert rb'{"A": 1, "B": "\/Expr(x + 1)\/", "C": "/Expr(x)/"}' == bytes(written)


def test_both_zeros_keep_their_signs() -> None:
    """Although they are equal, whichever comes first."""
    for zeros in ((0.0, -0.0), (-0.0, 0.0)):
        assert [f'{{"A": {each!r}}}'.encode() for each in zeros] == [
            bytes(plain({"A": each})) for each in zeros
        ]


@given(st.dictionaries(_NAMES, st.booleans() | _INTEGERS | st.text() | st.floats(), max_size=4))
def test_simple_ads_look_the_same(ad: Ad) -> None:
    """
    What is written without the language of ads is what is written with it: the same text in the same order.
    """
    out = io.StringIO()
    screen(out).json([plain(ad)])
    expected = msgspec.json.format(f"[{write_json(ClassAd.from_wire(ad))}]", indent=2)
    assert expected + "\n" == out.getvalue()


_VALUES = (
    st.booleans()
    | _INTEGERS
    | st.text()
    | st.floats()
    | st.sampled_from([Expr("x + 1"), Expr('{ 1, "b", [ c = { } ] }'), Expr("[ ]"), Expr("undefined")])
)


@given(st.lists(st.lists(st.dictionaries(_NAMES, _VALUES, max_size=4), max_size=3)))
def test_an_array_in_pieces_is_the_array(pieces: list[list[Ad]]) -> None:
    """However its ads come, whatever they hold, and also if there are none."""
    whole, little = io.StringIO(), io.StringIO()
    screen(whole).json([plain(one) for piece in pieces for one in piece])
    array = JsonArray(screen(little))
    for piece in pieces:
        array.add(piece)
    array.end()
    assert whole.getvalue() == little.getvalue()


def test_a_terminal_shows_as_many_rows_as_it_has_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what stands around them; a small one some nevertheless; anything else all."""
    monkeypatch.setenv("LINES", "40")
    assert (35, 0) == (screen(Terminal()).page, screen(io.StringIO()).page)
    monkeypatch.setenv("LINES", "3")
    assert 10 == screen(Terminal()).page


@given(st.lists(st.tuples(st.integers(), st.text("abc", max_size=9), st.floats(-9, 9) | st.integers())))
def test_columns_are_as_wide_as_their_widest_cell(rows: list[tuple[int, str, int | float]]) -> None:
    """Whatever kinds of cells there are, each line has them at the same places."""
    out = io.StringIO()
    screen(out).table(("N", "TEXT", "X"), rows, right=frozenset({"N"}))
    texts = [("N", "TEXT", "X")]
    texts += [(str(n), text, f"{x:.2f}" if isinstance(x, float) else str(x)) for n, text, x in rows]
    first, second = (max(len(row[at]) for row in texts) for at in (0, 1))
    assert [f"{n:>{first}}  {text:<{second}}  {x}".rstrip() for n, text, x in texts] == out.getvalue().split(
        "\n"
    )[:-1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.0123, "12 ms"),
        (0.9999, "1.00 s"),
        (3.14159, "3.14 s"),
        (59.94, "59.9 s"),
        (61.0, "1 min 1 s"),
        (7322.0, "2 h 2 min"),
        (200_000.0, "2 d 7 h"),
        (-1.0, "0 ms"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """As exact as a person wants it."""
    assert text == duration(seconds)


def test_other_amounts() -> None:
    """Sizes, run times and counts."""
    assert ["512 B", "1 KiB", "1.5 MiB", "128 MiB", "2 GiB"] == [
        size(kib) for kib in (0.5, 1, 1536, 131_072, 2 << 20)
    ]
    assert "1+01:01:01" == run_time(90_061)
    assert ["1 job", "0 jobs", "2 processes"] == [
        counted(1, "job"),
        counted(0, "job"),
        counted(2, "process", "processes"),
    ]
