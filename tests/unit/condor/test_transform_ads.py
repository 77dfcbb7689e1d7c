"""condor_transform_ads, as a process that is forked: rules files tried on ads."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kettle.testing.commands import running
from kettle_services.condor import launchers

Said = tuple[int, str, str]
Transform = Callable[..., Said]

ADS = """\
Owner = "anna"
RequestCpus = 2
Requirements = TARGET.Cpus >= RequestCpus

Owner = "ben"
RequestCpus = 8
"""
RULES = """\
NAME big
REQUIREMENTS RequestCpus > 4
SET Queue "$(queue:large)"
EVALSET Half RequestCpus / 2
TRANSFORM
"""


@pytest.fixture
def transform(tmp_path: Path) -> Transform:
    place = launchers.install(tmp_path / "commands")
    (tmp_path / "ads").write_text(ADS)
    (tmp_path / "rules").write_text(RULES)

    def run(*words: str, typed: str = "") -> Said:
        program = [str(place / "condor_transform_ads"), *words]
        return asyncio.run(running.run(program, tmp_path, {}, typed))

    return run


def test_what_meets_the_requirements_is_changed(transform: Transform) -> None:
    """All else stays as it is; macros may be typed; the ads may come from standard input."""
    first = 'Owner = "anna"\nRequestCpus = 2\nRequirements = TARGET.Cpus >= RequestCpus\n\n'
    second = 'Half = 4\nOwner = "ben"\nQueue = "{queue}"\nRequestCpus = 8\n\n'
    wanted = first + second.format(queue="large")
    assert (0, wanted, "") == transform("-rules", "rules", "ads")
    assert (0, wanted, "") == transform("-rules", "rules", "-in:long", "ads", "-out:long,nosort", "-")
    assert (0, wanted, "") == transform("-rules", "rules", typed=ADS)
    assert (0, wanted, "") == transform("-rules", "rules", "-in", "-", typed=ADS)
    assert (0, first + second.format(queue="huge"), "") == transform("-rules", "rules", "queue = huge", "ads")


def test_ads_come_and_go_in_any_form(transform: Transform, tmp_path: Path) -> None:
    status, text, _ = transform("-rules", "rules", "-json", "ads")
    assert 0 == status
    anna, ben = json.loads(text)
    assert ("/Expr(TARGET.Cpus >= RequestCpus)/", "large") == (
        anna["Requirements"].replace("\\", ""),
        ben["Queue"],
    )
    assert (0, "", "") == transform("-rules", "rules", "-out:xml", "ads.xml", "ads")
    assert "<classads>" in (tmp_path / "ads.xml").read_text()
    status, text, _ = transform("-rules", "rules", "-new", "ads.xml")
    assert text.startswith("{\n[")
    assert text == transform("-rules", "rules", "-new", "ads")[1]


def test_rules_follow_each_other(transform: Transform, tmp_path: Path) -> None:
    """Later ones see the macros of earlier ones, and which were met is told."""
    (tmp_path / "one").write_text("EVALMACRO n RequestCpus * 10\nSET A $(n)\n")
    (tmp_path / "two").write_text("REQUIREMENTS A == 80\nSET B $(n) + 1\n")
    words = ("-rules", "one", "-rules", "two", "ads")
    status, text, errors = transform(*words, "-verbose")
    assert (0, 1) == (status, text.count("\nB = 80 + 1\n"))
    assert [
        "ad 1 is transformed by one",
        "ad 1 does not meet the requirements of two",
        "ad 2 is transformed by one",
        "ad 2 is transformed by two",
    ] == errors.splitlines()


def test_a_statement_that_fails_is_skipped_and_told(transform: Transform, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text('EVALSET Bad 1 + "x"\nSET Good 1\n')
    status, text, errors = transform("-rules", "rules", "ads")
    assert (1, 2, 0) == (status, text.count("Good = 1\n"), text.count("Bad"))
    assert 2 == len(errors.splitlines())
    assert errors.startswith("ERROR: ad 1: rules, line 1: ")
    assert (1, text, "") == transform("-rules", "rules", "-quiet", "ads")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("ads",), "which rules?"),
        (("-rules", "none"), "ERROR: Could not open none: No such file or directory"),
        (("-rules", "bad"), "ERROR: bad, line 2: there is no statement FROBNICATE"),
        (("-rules", "many"), "ERROR: many, line 2: 'many times!' is not a count and names"),
        (("-rules", "rules", "none"), "ERROR: Could not open none"),
        (("-rules", "rules", "bad"), "ERROR: bad, line 2, column "),
        (("-rules", "rules", "ads", "ads"), "'ads' is one file of ads too many"),
        (("-rules", "rules", "-in:yaml", "ads"), "'yaml' is no form of ads"),
        (("-rules", "rules", "-out", "none/out", "ads"), "ERROR: cannot write none/out"),
    ],
)
def test_what_makes_no_sense_is_explained(
    transform: Transform, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "bad").write_text("A = 1\nFROBNICATE x\n")
    (tmp_path / "many").write_text("SET A 1\nTRANSFORM many times! in (1 2)\n")
    status, text, errors = transform(*words)
    assert (1, "") == (status, text)
    assert sentence in errors


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("TRANSFORM 2", ["-00", "-01"]),
        ("TRANSFORM x in (a b)", ["a-00", "b-10"]),
        ("TRANSFORM x from (\n a\n b c\n)", ["a-00", "b c-10"]),
        ("TRANSFORM 2 x from items", ["one-00", "one-01"]),
    ],
)
def test_an_ad_goes_through_once_for_each_item(
    transform: Transform, tmp_path: Path, statement: str, expected: list[str]
) -> None:
    """With its macros, as in a queue statement."""
    (tmp_path / "items").write_text("one\n")
    (tmp_path / "each").write_text(f'UNIVERSE vanilla\nSET A "$(x)-$(Row)$(Step)"\n{statement}\n')
    status, text, errors = transform("-rules", "each", "-json", "-", typed='Owner = "anna"\n')
    assert (0, "") == (status, errors)
    assert expected == [ad["A"] for ad in json.loads(text)]


def test_the_macros_of_the_machine_are_there(transform: Transform, tmp_path: Path) -> None:
    """What it is, and which release."""
    (tmp_path / "machine").write_text('SET A "$(OPSYS) $(ARCH) $(IsLinux) $(OPSYSANDVER)"\n')
    _, text, _ = transform("-rules", "machine", typed='Owner = "anna"\n')
    assert re.search(r'^A = "LINUX \S+ 1 \S+"$', text, re.MULTILINE), text
