"""`kettle dag`: DAG files checked and drawn."""

import json
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from kettle_services.cli.__main__ import main


class Said(NamedTuple):
    status: int
    out: str
    err: str


class Typed(Protocol):
    def __call__(self, *words: str) -> Said: ...


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    """The output of `kettle dag`, run in this process in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Said:
        status = main(["dag", *words])
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return run


def test_check(typed: Typed, tmp_path: Path) -> None:
    """A sound DAG is told with what it amounts to, and with warnings beside it."""
    (tmp_path / "a.dag").write_text(
        "JOB A a.sub\nJOB B b.sub\nJOB C c.sub NOOP\nSPLICE S s.dag\nPARENT A B CHILD C S\nFINAL F a.sub\n"
    )
    (tmp_path / "s.dag").write_text("JOB x a.sub\nJOB y a.sub\nWEAK PARENT x CHILD y\nSCRIPT PRE y w.sh\n")
    (tmp_path / "a.sub").write_text("queue\n")
    said = typed("check", "a.dag")

    assert said.status == 0
    assert said.err == "warning: a.dag, line 2: the submit file b.sub of node B is not there\n"
    shown = {line[:15].strip(): line[15:] for line in said.out.splitlines()[1:]}
    assert shown["nodes"] == "6 (5 job, 1 final)"
    assert (shown["edges"], shown["splices"]) == ("5 (1 weak)", "1")
    assert (shown["height"], shown["width"]) == ("3", "2")
    assert shown["longest chain"] == "A -> S+x -> S+y"


def test_faults_for_programs(typed: Typed, tmp_path: Path) -> None:
    """A program gets every fault and every warning with its place, and cycles as the list of their nodes."""
    (tmp_path / "a.dag").write_text(
        "JOB A { \n}\nJOB B {\n}\nJOB C {\n}\nPARENT A CHILD B\nPARENT B CHILD C\nPARENT C CHILD A\nRETRY D 1\nRETRY A 1x\n"
    )
    said = typed("check", "--json", "a.dag")
    answer = json.loads(said.out)

    assert said.status == 1
    assert answer["faults"] == [
        {"file": "a.dag", "line": 10, "sentence": "no node is called D"},
        {
            "file": "a.dag",
            "line": 1,
            "sentence": "these nodes wait for each other in a circle: A -> B -> C -> A",
        },
    ]
    assert [warning["line"] for warning in answer["warnings"]] == [11]
    assert answer["dag"]["kinds"]["job"] == 3


def test_a_cycle_has_no_longest_chain(typed: Typed, tmp_path: Path) -> None:
    """People are told the cycle, and no figures that a graph with one does not have."""
    (tmp_path / "a.dag").write_text("JOB A {\n}\nJOB B {\n}\nPARENT A CHILD B\nPARENT B CHILD A\n")
    said = typed("check", "a.dag")
    assert (1, True) == (said.status, "in a circle: A -> B -> A" in said.err)
    assert [line.split()[0] for line in said.out.splitlines()[1:]] == ["files", "nodes", "edges", "faults"]


def test_partial_file(typed: Typed, tmp_path: Path) -> None:
    """With a rescue file it is told how much was done before."""
    (tmp_path / "a.dag").write_text("JOB A x NOOP\nJOB B x NOOP\n")
    (tmp_path / "a.dag.rescue001").write_text("DONE A\n")

    assert (
        json.loads(typed("check", "--json", "--partial", "a.dag.rescue001", "a.dag").out)["dag"]["done"] == 1
    )


def test_graph(typed: Typed, tmp_path: Path) -> None:
    """A picture shows nodes and edges, and no joins; a splice is a frame, or one figure."""
    (tmp_path / "a.dag").write_text("JOB A x DONE\nJOB B x\nSPLICE S s.dag\nPARENT A B CHILD S\n")
    (tmp_path / "s.dag").write_text('JOB "x y" x\nJOB z x\n')
    whole = json.loads(typed("graph", "--format", "json", "a.dag").out)
    folded = json.loads(typed("graph", "--format", "json", "--fold", "a.dag").out)
    text = typed("graph", "a.dag").out

    assert [(edge["parent"], edge["child"]) for edge in whole["edges"]] == [
        ("A", 'S+"x y"'),
        ("A", "S+z"),
        ("B", 'S+"x y"'),
        ("B", "S+z"),
    ]
    assert [(edge["parent"], edge["child"]) for edge in folded["edges"]] == [("A", "S"), ("B", "S")]
    assert [(node["name"], node["nodes"], node["done"]) for node in folded["nodes"]] == [
        ("A", 1, True),
        ("B", 1, False),
        ("S", 2, False),
    ]
    assert '    label="S";\n' in text
    assert '  "A" -> "S+\\"x y\\"";\n' in text


def test_graph_of_a_faulty_file(typed: Typed, tmp_path: Path) -> None:
    """What is wrong is not drawn."""
    (tmp_path / "a.dag").write_text("JOB A\n")
    said = typed("graph", "a.dag")

    assert (said.status, said.out) == (1, "")
    assert "a.dag, line 1: JOB: the submit description is missing" in said.err


def test_deep_check(typed: Typed, tmp_path: Path) -> None:
    """
    On request submit descriptions, scripts and DAGs within are looked at, with the variables of their nodes.
    """
    (tmp_path / "a.dag").write_text(
        "JOB A a.sub\nJOB B bad.sub\nJOB C a.sub\nSUBDAG EXTERNAL D d.dag\nSUBDAG EXTERNAL E a.dag\n"
        "JOB F {\nuniverse = vanilla\n}\nSUBDAG EXTERNAL G later.dag\n"
        'VARS A seconds="3"\nSCRIPT PRE A pre.sh x\nSCRIPT POST A a.sub\n'
    )
    (tmp_path / "a.sub").write_text("executable = /bin/sleep\narguments = $(seconds)\nqueue\n")
    (tmp_path / "bad.sub").write_text("executable = /bin/sleep\nuniverse = java\nqueue\n")
    (tmp_path / "d.dag").write_text("JOB X x.sub\nJOB Y\n")
    answer = json.loads(typed("check", "--deep", "--json", "a.dag").out)
    faults = {(fault["line"], fault["sentence"].partition(": ")[0]) for fault in answer["faults"]}

    assert faults == {
        (1, "the PRE script of node A is not there"),
        (1, "the POST script of node A cannot be executed"),
        (2, "the submit description of node B is refused"),
        (4, "within node D"),
        (5, "the DAG of node E is within itself"),
        (6, "the submit description of node F is refused"),
    }
    assert [warning["sentence"] for warning in answer["warnings"]] == [
        "within node D: d.dag, line 1: the submit file x.sub of node X is not there",
        "the DAG file later.dag of node G is not there",
    ]
