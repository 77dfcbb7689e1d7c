"""Files of jobs on the machine of their submitter: what is sent, and where results go."""

import os
from pathlib import Path

import msgspec
import pytest

from kettle.client.spooling.input_files import SMALL, InputFiles, SpoolingError, read_unchanged
from kettle.client.spooling.output_files import (
    has_ends,
    new_log_events,
    one_of_each_log,
    output_path,
    replacing,
    with_submitter_paths,
)
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.jobs import JobId
from kettle_wire.spooling import Manifest, Procs

JOB = JobId(7, 0)


def ad(iwd: Path, proc: int = 0, **said: str) -> Ad:
    return {
        "ClusterId": 7,
        "ProcId": proc,
        "Iwd": str(iwd),
        "Cmd": "/bin/true",
        "TransferExecutable": False,
        **said,
    }


def manifest(cargo: InputFiles) -> Manifest:
    return msgspec.msgpack.decode(cargo.manifest, type=Manifest)


def test_what_jobs_share_is_sent_once(tmp_path: Path) -> None:
    """Files of the same content are one file, and jobs with the same files have one list."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("same")
    (tmp_path / "c").write_text("other")
    ads = [ad(tmp_path, proc, TransferInput="a, b" if proc < 1000 else "a, c") for proc in range(2000)]
    cargo = InputFiles(ads)
    said = manifest(cargo)
    assert [["a", "b"], ["a", "c"]] == [[file.name for file in files] for files in said.lists]
    assert [(Procs(0, 1000), 0), (Procs(1000, 1000), 1)] == [(one.jobs, one.files) for one in said.shares]
    assert 2 == len(cargo.files)


def test_what_is_sent_is_what_the_sandbox_will_have(tmp_path: Path) -> None:
    """
    Programs are executable, listed or not, directories keep what is below them, of two files for one place the last counts.
    """
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f").write_text("deep")
    (tmp_path / "d" / "x").write_text("inner")
    (tmp_path / "x").write_text("outer")
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o600)
    cargo = InputFiles(
        [{**ad(tmp_path, Cmd="run", In="x", TransferInput="d, d/, run"), "TransferExecutable": True}]
    )
    (files,) = manifest(cargo).lists
    found = {file.name: cargo.files[file.sha256].path.read_text() for file in files}
    assert {"run": "#!/bin/sh\n", "d/e/f": "deep", "d/x": "inner", "e/f": "deep", "x": "inner"} == found
    assert 0o755 == next(file.mode for file in files if file.name == "run")


def test_a_proxy_is_sent_as_one_that_nobody_else_may_read(tmp_path: Path) -> None:
    (tmp_path / "proxy").write_text("key")
    (tmp_path / "proxy").chmod(0o644)
    (files,) = manifest(InputFiles([ad(tmp_path, x509userproxy=str(tmp_path / "proxy"))])).lists
    assert [("proxy", 0o600)] == [(file.name, file.mode) for file in files]


def test_large_files_are_sent_alone(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (SMALL + 1))
    names = [f"{number}" for number in range(450)]
    for name in names:
        (tmp_path / name).write_text(name)
    cargo = InputFiles([ad(tmp_path, TransferInput=", ".join([*names, "large"]))])
    small, large = cargo.batches([*cargo.files, cargo.digest])
    assert [200, 200, 50] == [len(files) for files in small]
    assert [tmp_path / "large"] == [file.path for file in large]
    assert [200] == [len(read_unchanged(files)) for files in small[:1]]


def test_a_file_that_changes_meanwhile_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    cargo = InputFiles([ad(tmp_path, TransferInput="a")])
    ((files,), _) = cargo.batches(list(cargo.files))
    (tmp_path / "a").write_text("after!")
    with pytest.raises(SpoolingError, match="/a changed while it was sent"):
        read_unchanged(files)


@pytest.mark.parametrize("kind", ["missing", "pipe"])
def test_what_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    """Nothing but a regular file is opened: a pipe would keep us until somebody writes to it."""
    if kind == "pipe":
        os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpoolingError, match=f"^{tmp_path}/{kind}: "):
        InputFiles([ad(tmp_path, TransferInput=kind)])


def test_results_go_where_the_submitter_said(tmp_path: Path) -> None:
    """Of an ad as the queue has it, whose own places are those of the access point."""
    queued: Ad = {
        "Iwd": "/spool/7/0", "Out": "_condor_stdout", "Err": "_condor_stderr", "TransferOutputRemaps": "",
        "SUBMIT_Iwd": str(tmp_path), "SUBMIT_Out": "o/out", "SUBMIT_Err": Expr('strcat("e", "rr")'),
        "SUBMIT_TransferOutputRemaps": "made = /elsewhere/made; sent = https://there/sent",
    }  # fmt: skip
    places = with_submitter_paths(queued)
    assert tmp_path / "o" / "out" == output_path(places, JOB, "_condor_stdout")
    assert tmp_path / "err" == output_path(places, JOB, "_condor_stderr")
    assert Path("/elsewhere/made") == output_path(places, JOB, "made")
    assert tmp_path / "d" / "other" == output_path(places, JOB, "d/other")
    for name in ("../x", "/etc/passwd", "a/../../x"):
        with pytest.raises(SpoolingError):
            output_path(places, JOB, name)


def test_a_result_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "d" / "made"
    with pytest.raises(TypeError), replacing(path, JOB, 0o755) as fd:
        os.write(fd, "half")  # type: ignore[arg-type]  # which is not bytes
    assert [] == list(path.parent.iterdir())
    with replacing(path, JOB, 0o755) as fd:
        os.write(fd, b"all")
    assert ("all", ["made"]) == (path.read_text(), [each.name for each in path.parent.iterdir()])
    assert path.stat().st_mode & 0o100
    with pytest.raises(OSError, match="not a regular file"), replacing(path.parent, JOB, 0o644):
        pass


def test_a_log_gets_what_it_does_not_have() -> None:
    """It may be one of other jobs, too, and be fetched again and again."""
    one, two, three = (f"00{n} (007.000.000) then\n...\n" for n in range(3))
    other = "000 (006.000.000) before\n...\n"
    assert one + two == new_log_events("", one + two)
    assert two == new_log_events(other + one, one + two)
    assert "" == new_log_events(other + one + two, one + two)
    assert two == new_log_events(one, one + two + three[:9])


def test_a_log_is_complete_when_it_has_the_ends_of_what_has_completed() -> None:
    """Of each job, and each as a whole; of a job that was removed no end is waited for."""
    ads: list[Ad] = [
        {"ClusterId": 7, "ProcId": proc, "JobStatus": status, "UserLog": "/spool/7/log.0"}
        for proc, status in ((0, 4), (1, 4), (2, 3))
    ]
    [(first, ends)] = one_of_each_log([*ads, {"ClusterId": 7, "ProcId": 3, "JobStatus": 4}])
    begun, *ended = (
        f"{kind} (007.00{proc}.000) then\n...\n" for kind, proc in (("001", 1), ("005", 0), ("005", 1))
    )
    assert (ads[0], {JobId(7, 0), JobId(7, 1)}) == (first, ends)
    assert not has_ends("", ends)
    assert not has_ends(begun + ended[0] + ended[1][:-4], ends)
    assert has_ends(begun + "".join(ended), ends)
    assert has_ends("", set())
