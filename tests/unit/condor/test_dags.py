"""condor_submit_dag -no_submit and condor_dag_checker."""

import json
from pathlib import Path

import pytest

from kettle_services.condor.dagman.own_job import OwnJob, own_job
from kettle_services.condor.start import main


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a DAG, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    (tmp_path / "a.dag").write_text("JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B\nFINAL F a.sub\n")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a command."""
    assert main(words[0], list(words[1:])) == status
    found = capsys.readouterr()
    return found.out, found.err


def test_description_without_submission(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The description is written, and where everything is is said; with -f it is written again."""
    words = ("condor_submit_dag", "-no_submit", "-dagman", "/bin/true", "-f", "a.dag")
    line = "-" * 71
    expected = f"""\
{line}
File for submitting this DAG to HTCondor           : a.dag.condor.sub
Log of DAGMan debugging messages                   : a.dag.dagman.out
Log of HTCondor library output                     : a.dag.lib.out
Log of HTCondor library error messages             : a.dag.lib.err
Log of the life of condor_dagman itself            : a.dag.dagman.log

-no_submit given, not submitting DAG to HTCondor. You can do this with:
"condor_submit a.dag.condor.sub"
{line}
"""

    assert said(capsys, *words) == (expected, "")
    assert said(capsys, *words) == (expected, "")
    assert "executable  = /bin/true\n" in (work / "a.dag.condor.sub").read_text()


def test_wrong_words(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown flag is refused with all that there are."""
    out, err = said(capsys, "condor_submit_dag", "-maxjob", "5", "-nonsense", "a.dag", status=1)

    assert out == ""
    assert err.startswith("Error: Unknown flag '-nonsense' provided\nusage: condor_submit_dag")
    assert "-maxjobs N" in err
    assert said(capsys, "condor_submit_dag", status=1)[1] == "ERROR: no dag file specified; aborting.\n"
    assert [path.name for path in work.iterdir()] == ["a.dag"]


def test_checker(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file is checked on its own; a sound one is passed over in silence."""
    (work / "b.dag").write_text("JOB A a.sub\nRETRY A\nPARENT A CHILD A\n")

    assert said(capsys, "condor_dag_checker", "a.dag") == ("", "")
    assert said(capsys, "condor_dag_checker", "a.dag", "b.dag", status=1)[0] == (
        "Detected 2 issues in b.dag:\n"
        "\t* b.dag:2 RETRY: the number of retries is missing; its form is RETRY <node> <number> [UNLESS-EXIT <value>]\n"
        "\t* b.dag:1 these nodes wait for each other in a circle: A -> A\n\n"
    )
    assert (
        "-json and -statistics" in said(capsys, "condor_dag_checker", "-json", "-stat", "a.dag", status=1)[1]
    )
    assert said(capsys, "condor_dag_checker", status=2)[1] == "ERROR: No DAG file(s) provided for linting.\n"


def test_shape(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shape of a DAG has the names that programs know from HTCondor."""
    (work / "b.dag").write_text("JOB A a.sub\nPARENT A CHILD A\n")
    answers = json.loads(
        said(capsys, "condor_dag_checker", "-json", "-strict", "-checkjdl", "a.dag", "b.dag", status=1)[0]
    )

    assert answers[0] | {"Errors": []} == {
        "DagFile": "a.dag",
        "TotalNodes": 3,
        "NumNodes": 2,
        "NumArcs": 1,
        "FinalNode": "F",
        "GraphHeight": 2,
        "GraphWidth": 1,
        "WidthByDepth": [1, 1],
        "NumErrors": 2,
        "Errors": [],
    }
    assert (answers[1]["IsCyclic"], answers[1]["DetectedCycle"]) == (True, "A -> A")
    assert answers[1]["Errors"][0]["SourceLine"] == 1
    assert said(capsys, "condor_dag_checker", "-statistics", "a.dag")[0].splitlines()[:3] == [
        "=== a.dag statistics ===",
        'FinalNode = "F"',
        "GraphHeight = 2",
    ]


def test_the_process_of_a_dag_learns_from_its_ad_whose_job_it_is(tmp_path: Path) -> None:
    """Also in which queue it is: an access point may have several, and the nodes belong into the same."""
    ad = tmp_path / ".job.ad"
    ad.write_text('ClusterId = 12\nProcId = 0\nIwd = "/w"\nGlobalJobId = "ap1#12.0#17"\nDAGManJobId = 7\n')
    expected = OwnJob(cluster=12, directory=Path("/w"), batch="", name="ap1#12.0#17", parent="7")
    assert expected == own_job({"_CONDOR_JOB_AD": str(ad)})
    assert "ap1" == expected.schedd
