"""`kettle classad eval --batch` and `kettle classad convert`: many expressions, many ads."""

from pathlib import Path
from typing import Final

import pytest

from .conftest import Said, Typed, kettle

DATA: Final = Path(__file__).parents[2] / "conformance" / "data"
ENGINES: Final = ("interpreter", "closure", "columnar")


def vectors(name: str) -> list[list[str]]:
    text = (DATA / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.split("\n")[1:] if line]


# -- batches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_gives_the_vectors(engine: str) -> None:
    """Each expression of the conformance vectors, a line each, gives its value."""
    rows = vectors("classad-vectors.tsv")
    said = kettle("eval", "--batch", "--engine", engine, stdin="".join(f"{row[0]}\n" for row in rows))
    assert (0, "") == (said.status, said.err)
    got = said.out.removesuffix("\n").split("\n")
    assert len(rows) == len(got)
    assert [] == [(row, value) for row, value in zip(rows, got, strict=True) if value != row[1]]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_of_matches_gives_the_vectors(engine: str) -> None:
    """With columns MY, TARGET and expression, each row gives its value."""
    rows = vectors("classad-match-vectors.tsv")
    text = "".join("\t".join(row[:3]) + "\n" for row in rows)
    said = kettle("eval", "--batch", "--tsv", "--engine", engine, stdin=text)
    assert (0, "") == (said.status, said.err)
    got = said.out.removesuffix("\n").split("\n")
    assert len(rows) == len(got)
    assert [] == [(row, value) for row, value in zip(rows, got, strict=True) if value != row[3]]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_line_of_a_batch_gives_one(engine: str) -> None:
    """
    An empty line, octets that are no text, other kinds of line ends and a last line without an end are lines too.
    """
    lines = [
        b"",
        b"1 + 1\r",
        b'"\xff\xe2\x80\xa8"',
        b'strcat("a", "\\n")',
        b"1 +",
        b"+".join([b"1"] * 500),
        b"7",
    ]
    said = kettle("eval", "--batch", "--engine", engine, stdin=b"\n".join(lines))
    expected = ["PARSE_ERROR", "2", '"\\377\\342\\200\\250"', '"a\\n"', "PARSE_ERROR", "EVAL_FAIL", "7", ""]
    assert Said(0, "\n".join(expected), "") == said


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_with_a_bad_ad_is_a_parse_error(engine: str) -> None:
    """
    An empty MY is an empty ad, an empty TARGET is none, and an ad that cannot be read harms its own row only.
    """
    rows = "[x=1\t\t1\n\t[x=\t1\n\t\tisUndefined(TARGET.x)\n\t[x = 3]\tx\n[x = 4]\t\tx\n1\t\t1\n"
    said = kettle("eval", "--batch", "--tsv", "--engine", engine, stdin=rows)
    assert Said(0, "PARSE_ERROR\nPARSE_ERROR\ntrue\n3\n4\nPARSE_ERROR\n", "") == said


def test_a_row_with_other_columns_is_a_mistake() -> None:
    """The line is named; what came before it has been answered."""
    said = kettle("eval", "--batch", "--tsv", stdin="\t\t1\n\t1\n")
    assert (2, "1\n") == (said.status, said.out)
    assert "line 2 has 2 columns" in said.err


# -- convert -----------------------------------------------------------------------------------------------------------

ADS: Final = (
    '[ Name = "slot1@here"; Memory = 4096; LoadAvg = 0.25; Online = true; Gone = undefined; Bad = error; '
    'Requirements = TARGET.RequestMemory <= MY.Memory && Owner =?= "ada"; L = {1, x + 1}; Inner = [ a = 1; b = a ] ]\n'
    '[ Name = "a \\"quoted\\" \\\\ name"; Rank = -Memory; Text = "Gr\\303\\274n" ]\n'
)


def test_each_form_turns_into_another_and_back() -> None:
    """What has gone through all forms is the same as before, told how it is written or not."""
    first = kettle("convert", "--from", "new", "--to", "new", stdin=ADS)
    said = first
    for wanted in ("long", "xml", "json", "jsonl", "new"):
        before, said = said, kettle("convert", "--to", wanted, stdin=said.out)
        assert (0, "") == (said.status, said.err)
        assert before.out != said.out
        assert 1 == said.out.count("slot1@here")
    assert first == said


@pytest.mark.parametrize("form", ["long", "json", "jsonl", "xml"])
def test_the_form_can_be_told(typed: Typed, tmp_path: Path, form: str) -> None:
    """What was written in a form is read in it, and in no other."""
    said = kettle("convert", "--to", form, stdin=ADS)
    (tmp_path / "ads").write_text(said.out)
    wrong = "xml" if form == "long" else "long"
    assert said == kettle("convert", "--from", form, "--to", form, stdin=said.out)
    assert 2 == typed("eval", "--my", tmp_path / "ads", "1").status
    assert 2 == kettle("convert", "--from", wrong, "--to", form, stdin=said.out).status


def test_octets_that_are_no_text_survive() -> None:
    """Strings are octets, and no locale changes them."""
    said = kettle("convert", "--to", "long", stdin=b'Name = "\xff\xc3\xbc"\n', LC_ALL="C")
    assert Said(0, 'Name = "\udcff\u00fc"\n\n', "") == said


def test_json_gets_no_octets_that_are_no_text() -> None:
    """They are escapes within an expression, so whatever reads JSON can read it."""
    stdin = b'Name = "\xffz"\n'
    assert Said(0, '{"Name": "\\/Expr(\\"\\\\377z\\")\\/"}\n', "") == kettle(
        "convert", "--to", "jsonl", stdin=stdin
    )
    assert Said(0, '"\\/Expr(\\"\\\\377z\\")\\/"\n', "") == kettle("eval", "--json", '"\\377z"')


@pytest.mark.parametrize("words", [(), ("--from", "long")])
def test_a_history_file_holds_an_ad_per_job(words: tuple[str, ...]) -> None:
    """A line of asterisks ends an ad, and what it says is no attribute."""
    stdin = 'ProcId = 0\n*** Offset = 0 ClusterId = 1 Owner = "ada"\nProcId = 1\n*** Offset = 11\n'
    said = kettle("convert", *words, "--to", "jsonl", stdin=stdin)
    assert Said(0, '{"ProcId": 0}\n{"ProcId": 1}\n', "") == said
    said = kettle("eval", "--my", "-", "ProcId", stdin=stdin)
    assert Said(2, "", "kettle classad: standard input holds several ads; one is needed\n") == said


@pytest.mark.parametrize(
    "text", ["A = 1\n", "[ A = 1 ]", '{"A": 1}', '[{"A": 1}]', '<c><a n="A"><i>1</i></a></c>']
)
def test_a_byte_order_mark_is_no_part_of_an_ad(text: str) -> None:
    """Editors put it before text of any form."""
    assert Said(0, "A = 1\n\n", "") == kettle("convert", "--to", "long", stdin=f"\ufeff{text}")


def test_a_bad_line_is_pointed_at(tmp_path: Path) -> None:
    """File, line and column are named, and a caret stands below the place."""
    path = tmp_path / "bad.long"
    path.write_text("A = 1\nB = (1 + \n")
    said = kettle("convert", "--to", "json", path)
    assert 2 == said.status
    first, line, caret = said.err.splitlines()
    assert first.startswith(f"kettle classad: {path}, line 2, column ")
    assert "  B = (1 + " == line
    assert caret.strip() == "^"


def test_what_a_form_cannot_carry_is_refused() -> None:
    """Nothing is changed silently: the ad is named, and those before it have been written."""
    said = kettle("convert", "--to", "long", stdin='[ A = 1 ]\n[ B = "two\\nlines" ]\n')
    assert (1, "A = 1\n\n") == (said.status, said.out)
    assert said.err.startswith("kettle classad: ad 2 cannot be written as long: B ")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The file and the reason are named."""
    said = kettle("convert", "--to", "json", tmp_path / "nowhere")
    assert (
        Said(2, "", f"kettle classad: {tmp_path}/nowhere cannot be read: No such file or directory\n") == said
    )
