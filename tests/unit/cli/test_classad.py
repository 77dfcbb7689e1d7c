"""`kettle classad eval` and `kettle classad match`: values, reasons, refusals."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from kettle.classad import ClassAd, Context, parse
from kettle_services.cli.classad.clauses import annotated, operands
from kettle_services.cli.classad.error_origins import Side

from .conftest import Said, Typed, kettle

ENGINES: Final = ("interpreter", "closure", "columnar")
JOB: Final = (
    '[ Owner = "ada"; RequestMemory = 2048; Requirements = TARGET.Memory >= RequestMemory; Rank = Memory ]'
)
SLOT: Final = 'Memory = 4096\nSTART = Owner == "ada" && RequestMemory > 1024\nRequirements = START\n'


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.ad"
    path.write_text(JOB)
    return path


@pytest.fixture
def slot(tmp_path: Path) -> Path:
    path = tmp_path / "slot.ad"
    path.write_text(SLOT)
    return path


# -- eval --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 1", "2"),
        ("Memory > 1", "undefined"),
        ('1 + "a"', "error"),
        ('"a\\nb"', '"a\\nb"'),
        ('userHome("no such user", "/tmp")', '"/tmp"'),
        ("random() < 1 && time() > 1700000000", "true"),
    ],
)
def test_a_value_is_one_line(typed: Typed, engine: str, expression: str, value: str) -> None:
    """Nothing but the value is written, even if it is undefined or error."""
    assert Said(0, f"{value}\n", "") == typed("eval", "--engine", engine, expression)


@pytest.mark.parametrize("engine", ENGINES)
def test_ads_come_from_files(job: Path, slot: Path, engine: str) -> None:
    """MY and TARGET may be in any form, and one of them may be standard input."""
    words = ("eval", "--engine", engine, "--my", job, "--target")
    assert Said(0, "true\n", "") == kettle(*words, slot, "Requirements && TARGET.Requirements")
    assert Said(0, "8192\n", "") == kettle(*words, "-", "Memory * 2", stdin='{"Memory": 4096}')
    assert Said(0, "2048\n", "") == kettle("eval", "--engine", engine, "--my", job, "RequestMemory")


def test_json_is_the_json_form(typed: Typed) -> None:
    """What JSON has a form for is plain JSON, an expression is marked."""
    assert Said(0, '[1, "a}", {"b": 2.5}]\n', "") == typed("eval", "--json", '{1, "a}", [b = 2.5]}')
    assert Said(0, "null\n", "") == typed("eval", "--json", "undefined")
    assert Said(0, '["\\/Expr(x + 1)\\/"]\n', "") == typed("eval", "--json", "{x + 1}")


def test_what_cannot_be_read_is_pointed_at() -> None:
    """Line and column are named, and a caret stands below the place."""
    said = kettle("eval", "1 +\n(2 * )")
    assert (1, "") == (said.status, said.out)
    first, line, caret = said.err.splitlines()
    assert first.startswith("kettle classad: the expression, line 2, column 6: ")
    assert ("  (2 * )", "       ^") == (line, caret)


def test_an_evaluation_that_is_given_up_has_its_own_status() -> None:
    """No value is written, and the status tells it from an expression that cannot be read."""
    said = kettle("eval", "+".join(["1"] * 500))
    assert (3, "") == (said.status, said.out)
    assert said.err.startswith("kettle classad: the evaluation was given up: ")


def test_the_zone_is_that_of_the_machine_but_for_batches() -> None:
    """A person means the local zone; two runs of a batch agree wherever they take place."""
    hours = "getHours(absTime(0))"
    assert Said(0, "5\n", "") == kettle("eval", hours, TZ="XYZ-5")
    assert Said(0, "0\n", "") == kettle("eval", "--batch", stdin=hours, TZ="XYZ-5")


def test_debug_reports_beside_the_value() -> None:
    """What `debug` sees goes to standard error."""
    said = kettle("eval", "debug(1 + 1) * 2")
    assert (0, "4\n") == (said.status, said.out)
    assert "2" in said.err


@pytest.mark.parametrize(
    ("expression", "sentences"),
    [
        ("Memory + 1", ["Memory is not defined in MY, and there is no target"]),
        ("TARGET.Memory", ["TARGET.Memory: there is no target"]),
        ("nofunc(1)", ["there is no function nofunc"]),
        ("strcmp(1)", ["strcmp takes 2 arguments, not 1"]),
        ("substr(1)", ["substr takes 2 to 3 arguments, not 1"]),
        ('1 + (2 * "a")', ['2 * "a" is error, of 2 and "a"']),
        ('regexp("(", "a")', ['"(" is a bad pattern']),
        ('regexp("a", 5)', ['regexp("a",5) is error, of "a" and 5']),
        ("1 > 2 && x", ["false  1 > 2"]),
        ("floor(x)", ["floor(x) is error, of undefined", "x is not defined in MY, and there is no target"]),
        ("true ? x : y", ["x is not defined in MY, and there is no target"]),
        ("x && false", []),
    ],
)
def test_the_reason_can_be_had(typed: Typed, expression: str, sentences: list[str]) -> None:
    """Below the value stands which name is not defined and which operands do not suit, and nothing else."""
    said = typed("eval", "--explain", expression)
    assert (0, "") == (said.status, said.err)
    assert [f"  {sentence}" for sentence in sentences] == said.out.splitlines()[1:]


@pytest.mark.parametrize(
    ("my", "expression", "sentences"),
    [
        ("[]", "Disk", ["Disk is defined in neither ad"]),
        ("[]", "MY.Memory", ["Memory is not defined in MY"]),
        ("[]", "TARGET.Disk", ["Disk is not defined in TARGET"]),
        ("[ a = b; b = a + 1 ]", "a", ["a of MY leads back to itself"]),
        ("[ a = undefined ]", "a", ["a is undefined in MY"]),
        (
            "[]",
            "TARGET.Requirements",
            ["Owner is defined in neither ad", "RequestMemory is defined in neither ad"],
        ),
    ],
)
def test_the_reason_is_looked_for_in_both_ads(
    typed: Typed, tmp_path: Path, slot: Path, my: str, expression: str, sentences: list[str]
) -> None:
    """Attributes are followed to the ads that hold them."""
    (tmp_path / "my").write_text(f"{{{my}}}")
    said = typed("eval", "--explain", "--my", tmp_path / "my", "--target", slot, expression)
    assert (0, "", ["undefined", *(f"  {sentence}" for sentence in sentences)]) == (
        said.status,
        said.err,
        said.out.splitlines(),
    )


def test_false_is_explained_by_its_clauses(tmp_path: Path, slot: Path) -> None:
    """Those that are false, also of an attribute that is only named, with the values of their names."""
    (tmp_path / "my").write_text(
        "[ RequestMemory = 8192; L = {1, 2}; Requirements = TARGET.Memory >= RequestMemory && (true) && "
        "member(5, L) && size(L) == 2 && +TARGET.Memory == TARGET.Disk ]"
    )
    said = kettle("eval", "--explain", "--my", tmp_path / "my", "--target", slot, "Requirements")
    assert [
        "false",
        "  false  TARGET.Memory >= RequestMemory   (TARGET.Memory is 4096, RequestMemory is 8192)",
        "  false  member(5,L)   (L is { 1,2 })",
    ] == said.out.splitlines()


def test_a_terminal_gets_the_reason_unasked() -> None:
    """Who looks at an undefined wants to know why; the first line is the value all the same."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "kettle_services.cli", "classad", "eval", "Memory"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        env={"NO_COLOR": "1"},
    ) as process:
        os.close(theirs)
        assert 0 == process.wait(60)
    lines = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    assert ["undefined", "  Memory is not defined in MY, and there is no target"] == lines


@pytest.mark.parametrize(
    "words",
    [
        ("eval",),
        ("eval", "--tsv", "1"),
        ("eval", "--batch", "1"),
        ("eval", "--batch", "--json"),
        ("eval", "--explain", "--json", "1"),
        ("eval", "--my", "-", "--target", "-", "1"),
        ("eval", "--engine", "steam", "1"),
        ("convert", "--to", "yaml"),
        ("match", "-", "-"),
        (),
    ],
)
def test_what_makes_no_sense_is_refused(typed: Typed, words: tuple[str, ...]) -> None:
    """A mistake in what was typed is status 2 and a sentence."""
    said = typed(*words)
    assert (2, "") == (said.status, said.out)
    assert said.err


# -- match -------------------------------------------------------------------------------------------------------------


def test_ads_that_match(job: Path, slot: Path) -> None:
    """
    The first word is the answer, then each side clause by clause; a name stands for the clauses it names.
    """
    said = kettle("match", job, slot)
    assert (0, "") == (said.status, said.err)
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert [
        "match",
        "",
        f"{job}: Requirements is true; Rank is 4096",
        "VALUE IN CLAUSE",
        "true Requirements TARGET.Memory >= RequestMemory",
        "",
        f"{slot}: Requirements is true; no Rank, which counts as 0",
        "VALUE IN CLAUSE",
        'true START Owner == "ada"',
        "true START RequestMemory > 1024",
    ] == lines


def test_ads_that_do_not_match_say_why(slot: Path) -> None:
    """Status 1; programs get each clause, whether it holds, and why it is undefined."""
    said = kettle(
        "match", "-", slot, "--json", stdin='[ Owner = "bob"; Requirements = Disk > 1 && Memory > 1 ]'
    )
    assert (1, "") == (said.status, said.err)
    told: dict[str, Any] = msgspec.json.decode(said.out)
    assert (False, False, False) == (told["match"], told["left"]["agrees"], told["right"]["agrees"])
    assert [
        ("Disk > 1", "undefined", False, ["Disk is defined in neither ad"]),
        ("Memory > 1", "true", True, []),
    ] == [(c["text"], c["value"], c["holds"], c["because"]) for c in told["left"]["clauses"]]
    assert [("false", False), ("undefined", False)] == [
        (c["value"], c["holds"]) for c in told["right"]["clauses"]
    ]


def test_a_clause_that_is_false_shows_its_values(job: Path) -> None:
    """Behind the clause stands what its names stand for, once each; programs get it as an object."""
    words, stdin = (
        ("match", job, "-"),
        '[ Memory = 1024; Requirements = TARGET.Owner == "bob" || Owner =?= 5 ]',
    )
    lines = kettle(*words, stdin=stdin).out.splitlines()
    assert (
        "false  Requirements  TARGET.Memory >= RequestMemory   (TARGET.Memory is 1024, RequestMemory is 2048)"
        in lines
    )
    assert any(line.endswith('   (TARGET.Owner is "ada", Owner is "ada")') for line in lines)
    told: dict[str, Any] = msgspec.json.decode(kettle(*words, "--json", stdin=stdin).out)
    [clause] = told["left"]["clauses"]
    assert {"TARGET.Memory": "1024", "RequestMemory": "2048"} == clause["operands"]


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (0, "Memory > 9   (Memory is 5, Disk is 6)"),
        (37, "Memory > 9   (Memory is 5, Disk is 6)"),
        (30, "Memory > 9   (Memory is 5, Di…"),
        (5, "Memory > 9…"),
    ],
)
def test_only_what_stands_behind_a_clause_is_cut(room: int, expected: str) -> None:
    """On a narrow terminal the clause is whole and its values are as many as fit."""
    assert expected == annotated("Memory > 9", {"Memory": "5", "Disk": "6"}, room)


def test_names_that_mean_something_else_are_not_shown() -> None:
    """What is evaluated in other ads has no value here."""
    side = Side(ClassAd.parse("[ x = 1; L = {[x = 2]}; n = 3 ]"), "MY")
    clause = parse("countMatches(x > 5, L) > n && [x = n].x == 7")
    assert {"L": "{ [ x = 2 ] }", "n": "3", "[ x = n ].x": "3"} == operands(clause, side, None, Context())


def test_missing_requirements_are_explained(job: Path, tmp_path: Path) -> None:
    """An ad without Requirements matches nothing, which is not what one would guess."""
    path = tmp_path / "slot.json"
    path.write_text('{"Memory": 4096}')
    said = kettle("match", job, path)
    assert 1 == said.status
    assert f"{path}: no Requirements, and an ad without them matches nothing" in said.out


def test_colours_are_for_who_wants_them(job: Path, slot: Path) -> None:
    """What holds is green."""
    assert "\x1b[32mmatch\x1b[0m" in kettle("match", job, slot, KETTLE_COLOR="always").out


@pytest.mark.parametrize("text", ["", "A = (\n", "A = 1\n\nB = 2\n"])
@pytest.mark.parametrize("words", [("match", "-"), ("eval", "1", "--my", "-", "--target")])
def test_what_is_not_one_ad_is_no_answer(job: Path, words: tuple[str, ...], text: str) -> None:
    """Status 2, because 1 would say that the two do not match, or that the expression is bad."""
    said = kettle(*words, job, stdin=text)
    assert (2, "") == (said.status, said.out)
    assert said.err.startswith("kettle classad: standard input")


# -- all ---------------------------------------------------------------------------------------------------------------


def test_nothing_is_loaded_that_is_not_needed() -> None:
    """An expression needs neither the pool's client nor numpy; who asks for columns gets numpy."""
    code = (
        "import sys, kettle_services.cli.__main__ as m; m.main(sys.argv[1:]); print(*sys.modules, sep='\\n')"
    )
    heavy = {"asyncio", "nats", "asyncpg", "aiohttp", "numpy", "kettle.client", "kettle_wire.commands"}

    def loaded(*words: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", code, "classad", "eval", "1 + 1", *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stdout.startswith("2\n")
        return heavy & set(done.stdout.split())

    assert set() == loaded()
    assert {"numpy"} == loaded("--engine", "columnar")
