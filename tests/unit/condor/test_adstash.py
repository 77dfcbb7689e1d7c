"""condor_adstash: what is new in the history, and how it is written."""

import json
from pathlib import Path

import pytest

from kettle_services.condor.commands import adstash
from kettle_services.condor.commands.adstash import Checkpoint, advanced, document
from kettle_services.condor.errors import ToolError
from kettle_wire.ads.types import Ad, Expr


def job(proc: int, left: float) -> Ad:
    return {"GlobalJobId": f"schedd#1.{proc}#0", "ProcId": proc, "EnteredCurrentStatus": left}


def test_each_job_is_new_once() -> None:
    """Also one that becomes known late, or that stayed in the queue for long after its end."""
    history = [job(3, 2000.0), job(1, 1000.0), job(2, 1900.0)]
    new, after = advanced(Checkpoint(), history, most=2)
    assert [1, 2] == [ad["ProcId"] for ad in new]
    assert Checkpoint(1, 1900.0, ["schedd#1.1#0", "schedd#1.2#0"]) == after
    new, after = advanced(after, [history[0], history[2], job(4, 10.0)], most=100)
    assert [4, 3] == [ad["ProcId"] for ad in new]
    assert (2, 2000.0) == (after.files, after.until)
    assert ([], after) == advanced(after, [history[0], history[2], job(4, 10.0)], most=100)


def test_an_ad_is_a_line() -> None:
    ad = job(1, 5.0) | {"Cmd": 'a "b"\n', "Sum": Expr("1 + ProcId")}
    [line] = document(ad).splitlines()
    assert {"ProcId": 1, "Cmd": 'a "b"\n'}.items() <= json.loads(line).items()
    action, same = document(ad, "jobs").splitlines()
    assert {"index": {"_index": "jobs", "_id": "schedd#1.1#0"}} == json.loads(action)
    assert line == same


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--interface", "opensearch"], "write --interface bulk, and send the file"),
        (["--interface", "bulc"], "knows no 'bulc'; do you mean bulk?"),
        (["--se_index_name", "Big Index"], "is no name of an index"),
        (["there"], "'there' stands alone"),
    ],
)
def test_what_cannot_be_written_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        adstash.run("condor_adstash", words)


def test_a_damaged_checkpoint_is_not_taken_for_none(tmp_path: Path) -> None:
    """Everything would be written again."""
    (tmp_path / "adstash_checkpoint.json").write_text("{")
    with pytest.raises(ToolError, match=r"is no checkpoint .*remove it to begin from the first job"):
        adstash.run("condor_adstash", ["--json_dir", str(tmp_path)])
