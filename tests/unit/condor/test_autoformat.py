"""What -autoformat and -format make of an ad."""

import time
from pathlib import Path

import pytest

from kettle_services.condor.printing.autoformat import Columns, format_of
from kettle_services.condor.printing.values import AdRow, Needs, fetched, names_in
from kettle_services.condor.start import main
from kettle_wire.ads.types import Ad, Expr

AD: Ad = {
    "ClusterId": 12,
    "ProcId": 3,
    "Name": 'a "b"',
    "Back": "c:\\d",
    "Half": 0.5,
    "Big": 1e20,
    "Yes": True,
    "Sum": Expr("ClusterId + Half"),
    "List": Expr("{ 1, 2 }"),
    "Broken": Expr("1 / 0"),
}


@pytest.mark.parametrize(
    ("letters", "texts", "line"),
    [
        ("", ("Name", "half", "Big", "Yes", "Sum"), 'a "b" 0.5 1E+20 true 12.5\n'),
        ("V", ("Name", "Back", "Half", "Nope"), '"a \\"b\\"" "c:\\\\d" 0.5 undefined\n'),
        ("r", ("Sum", "Name", "Sum + 1", "Nope"), 'ClusterId + Half "a \\"b\\"" Sum + 1 undefined\n'),
        ("j", ("List",), "12.3 { 1,2 }\n"),
        ("jl", ("Yes",), "ID = 12.3 Yes = true\n"),
        ("lng", ("Yes", "Nope"), "\nYes = true\nNope = undefined\n"),
        ("n", ("Yes", "Half"), "true\n 0.5\n"),
        ("t,", ("Yes", "Half"), "true,\t0.5\n"),
        ("", ("ClusterId", "ProcId", "Name", "Back"), '12 3 a "b" c:\\d\n'),
        ("", ("clusterid", "ProcId"), "12 3\n"),
        ("t", ("ClusterId", "ProcId"), "12\t3\n"),
        ("g,n", ("ClusterId", "ProcId"), "\n12\n3\n"),
        ("j", ("ProcId",), "12.3 3\n"),
        ("", ("Broken", "Half * 2", "true", "Half > 1"), "error 1.0 true false\n"),
    ],
)
def test_a_line_is_as_its_letters_say(letters: str, texts: tuple[str, ...], line: str) -> None:
    columns = Columns(texts, letters)

    assert line == columns.line(AdRow(AD))
    assert [line] == list(columns.lines([AD]))


def test_expressions_see_the_clock_of_this_machine() -> None:
    """`time()`, `CurrentTime` and the dates are those of the one who asks."""
    row = AdRow({"QDate": 0, "Age": Expr("time() - QDate")})
    before = int(time.time())
    values = [int(row.text(text)) for text in ("time()", "CurrentTime", "Age")]
    assert all(before <= value <= time.time() for value in values)
    assert row.text('formatTime(QDate, "%Y")') == time.strftime("%Y", time.localtime(0))


def test_what_an_expression_may_take_is_bounded() -> None:
    """A job's attribute does not keep its reader busy."""
    doubling = {f"a{n}": Expr(f"a{n - 1} + a{n - 1}") for n in range(1, 60)}
    assert AdRow({"a0": 1, **doubling}).text("a59") == "error"


def test_titles_stand_before_all() -> None:
    assert "" == Columns(("A", "B")).heading()
    assert " ID A B\n" == Columns(("A", "B"), "hj").heading()


@pytest.mark.parametrize(
    ("template", "text", "printed"),
    [
        ("%d", "ClusterId", "12"),
        ("%d", "Half", "0"),
        ("%d", "Yes", "1"),
        ("%d", "Name", ""),
        ("[%5.2f]", "ClusterId", "[12.00]"),
        ("%s", "ClusterId", "12"),
        ("[%s]", "Nope", ""),
        ("[%V]", "Nope", "[undefined]"),
        ("%V", "Name", '"a \\"b\\""'),
        ("%v", "Name", 'a "b"'),
        ("%r", "Sum", "ClusterId + Half"),
        ("%-6s|", "Yes", "true  |"),
        ("%06.1f", "Half", "0000.5"),
        ("%ld", "ClusterId", "12"),
        ("%x", "ClusterId", "c"),
        ("%%%d%%", "ProcId", "%3%"),
        (r"a\tb\n", "Nope", "a\tb\n"),
        ("100%% of it", "Nope", "100% of it"),
        ("%d and %d", "ProcId", "3 and %d"),
    ],
)
def test_a_format_is_that_of_printf(template: str, text: str, printed: str) -> None:
    """Text without a value is not printed, text without a conversion always is."""
    assert printed == format_of(template, text).printed(AdRow(AD))


def test_what_is_asked_for_is_what_is_needed() -> None:
    """Attributes of expressions; then those that their values are about, until nothing is missing."""
    assert ["A", "b"] == names_in(["A", "b", "a"])
    assert {"A", "B"} == set(names_in(["A + MY.B", "true", '"C"']))
    queue: Ad = {"Sum": Expr("Part + 1"), "Part": Expr("Whole / 2"), "Whole": 8, "Other": 1}
    asked: list[list[str]] = []

    def fetch(names: list[str]) -> list[Ad]:
        asked.append(names)
        return [{name: queue[name] for name in names if name in queue}]

    [ad] = fetched(["Sum"], fetch)
    assert 5 == AdRow(ad).value("Sum")
    assert [["Sum"], ["Sum", "Part"], ["Sum", "Part", "Whole"]] == asked
    assert [] == Needs(["Sum"], evaluated=False).of([queue])
    assert [] == Needs([]).of([queue]), "whole ads have everything"


@pytest.mark.parametrize(
    "words",
    [
        ["-af", "Foo("],
        ["-af:r", "ClusterId", "Foo("],
        ["-af", ""],
        ["-format", "%s", "Owner Cmd"],
        ["-long", "-attributes", "Owner,Cmd("],
    ],
)
def test_what_cannot_be_read_is_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says so, and there is no output; a format without a conversion has nothing to be read."""
    (ads := tmp_path / "ads").write_text("ClusterId = 12\n")
    assert 1 == main("condor_q", ["-jobads", str(ads), *words])
    out, errors = capsys.readouterr()
    assert ("", 1, True) == (out, errors.count("\n"), errors.startswith("Parse error: '"))
    assert 0 == main("condor_q", ["-jobads", str(ads), "-format", "hello\n", "Owner Cmd"])
    assert "hello\n" == capsys.readouterr().out
