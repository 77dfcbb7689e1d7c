"""Which files travel with a job, by HTCondor's rules."""

from pathlib import PurePosixPath

import pytest

from kettle.shadow.domain.files import destination, inputs
from kettle.wire.ads import Ad

AD: Ad = {"Iwd": "/home/alice", "Cmd": "/bin/cat", "In": "data/in.txt", "Out": "out.txt", "Err": "/dev/null"}


def test_executable_standard_input_and_listed_files_go_in() -> None:
    """
    They are placed flat, by base name; a trailing slash means the contents of a directory.
    """
    ad: Ad = {**AD, "TransferInput": "a.dat, sub/b.dat , tables/,"}
    names = [(str(w.path), w.name, w.contents) for w in inputs(ad)]

    assert [
        ("/bin/cat", "cat", False),
        ("/home/alice/data/in.txt", "in.txt", False),
        ("/home/alice/a.dat", "a.dat", False),
        ("/home/alice/sub/b.dat", "b.dat", False),
        ("/home/alice/tables", "tables", True),
    ] == names


def test_an_executable_that_stays_does_not_travel() -> None:
    """
    With TransferExecutable false and no standard input, nothing goes in.
    """
    assert [] == inputs({"Iwd": "/", "Cmd": "/bin/true", "TransferExecutable": False})


def test_results_go_to_the_working_directory() -> None:
    """
    Standard streams go where the submitter said, other files to Iwd under their name or their remap.
    """
    ad: Ad = {**AD, "TransferOutputRemaps": "a=b; c=/x/y"}
    targets = [destination(ad, name) for name in ("_condor_stdout", "_condor_stderr", "a", "c", "d/e")]

    assert ["/home/alice/out.txt", None, "/home/alice/b", "/x/y", "/home/alice/d/e"] == [
        None if t is None else str(t) for t in targets
    ]
    assert PurePosixPath("/home/alice/out.txt") == targets[0]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd"])
def test_a_worker_cannot_choose_the_place_of_a_result(name: str) -> None:
    """
    A name that leads out of the sandbox is refused.
    """
    with pytest.raises(ValueError, match="outside"):
        destination(AD, name)
