"""Which files travel with a job, by HTCondor's rules."""

from pathlib import PurePosixPath

import pytest

from kettle.transfer.file_lists import ManifestError
from kettle.transfer.submit_side_paths import destination, inputs
from kettle_services.shadow.domain.transfer_checks import check_inputs, check_outputs, limit
from kettle_wire.ads import Ad, Expr, Scalar

AD: Ad = {"Iwd": "/home/alice", "Cmd": "/bin/cat", "In": "data/in.txt", "Out": "out.txt", "Err": "/dev/null"}


def test_executable_standard_input_and_listed_files_go_in() -> None:
    """They are placed flat, by base name; a trailing slash means the contents of a directory."""
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
    """With TransferExecutable false and no standard input, nothing goes in."""
    assert [] == inputs({"Iwd": "/", "Cmd": "/bin/true", "TransferExecutable": False})


def test_results_go_to_the_working_directory() -> None:
    """Standard streams go where the submitter said, other files to Iwd under their name or their remap."""
    ad: Ad = {**AD, "TransferOutputRemaps": "a=b; c=/x/y"}
    targets = [destination(ad, name) for name in ("_condor_stdout", "_condor_stderr", "a", "c", "d/e")]

    assert ["/home/alice/out.txt", None, "/home/alice/b", "/x/y", "/home/alice/d/e"] == [
        None if t is None else str(t) for t in targets
    ]
    assert PurePosixPath("/home/alice/out.txt") == targets[0]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd"])
def test_a_worker_cannot_choose_the_place_of_a_result(name: str) -> None:
    """A name that leads out of the sandbox is refused."""
    with pytest.raises(ValueError, match="outside"):
        destination(AD, name)


MIB = 1 << 20


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"TransferInput": "a/b.dat, http://x/f, d/"}, {"b.dat", "d"}),
        ({"TransferInput": "a/b.dat, /x/y, ../z", "PreserveRelativePaths": True}, {"a/b.dat", "y", "z"}),
        ({"TransferInput": "a", "PublicInputFiles": "p/q, https://x/g"}, {"a", "q"}),
        ({"TransferPlugins": "foo=bin/plug;bar,baz=bin/plug"}, {"plug"}),
        ({"TransferInput": "a", "TransferExecutable": True, "ShouldTransferFiles": "NO"}, set[str]()),
        ({"TransferInput": "a", "ShouldTransferFiles": "IF_NEEDED"}, {"a"}),
    ],
)
def test_what_the_submit_side_sends(attributes: Ad, expected: set[str]) -> None:
    """Neither URLs, which the worker fetches, nor anything of a job that runs where its files are."""
    ad: Ad = {"Iwd": "/home/alice", "Cmd": "/bin/cat", "TransferExecutable": False, **attributes}
    assert expected == {wanted.name for wanted in inputs(ad)}


def test_results_have_a_directory_of_their_own() -> None:
    """Streams and files go there; inputs are where they are without it."""
    ad: Ad = {**AD, "TransferInput": "a.dat", "OutputDirectory": "/home/alice/results"}

    assert "/home/alice/a.dat" == str(inputs(ad)[-1].path)
    assert ["/home/alice/results/out.txt", "/home/alice/results/made"] == [
        str(destination(ad, name)) for name in ("_condor_stdout", "made")
    ]


def test_a_proxy_is_for_the_job_alone() -> None:
    """Whatever its modes are on the submit side; and where files are shared it stays where it is."""
    ad: Ad = {
        "Iwd": "/w",
        "TransferExecutable": False,
        "x509userproxy": "/tmp/x509up_u7",
        "TransferInput": "a",
    }
    expected = [("/w/a", "a", 0), ("/tmp/x509up_u7", "x509up_u7", 0o600)]

    assert expected == [(str(wanted.path), wanted.name, wanted.mode) for wanted in inputs(ad)]
    assert [] == inputs({**ad, "ShouldTransferFiles": "NO"})


def test_plugins_can_be_run() -> None:
    """Whatever their modes are on the submit side."""
    ad: Ad = {"Iwd": "/w", "TransferExecutable": False, "TransferPlugins": "foo=plug"}
    assert [("/w/plug", True)] == [(str(wanted.path), wanted.executable) for wanted in inputs(ad)]


@pytest.mark.parametrize(
    ("name", "remaps", "expected"),
    [
        ("a", r"a = b\;c", "/w/b;c"),
        ("d/e", "d = results", "/w/results/e"),
        ("d/e", "d/e = /abs/f", "/abs/f"),
        ("e", "d = x", "/w/e"),
    ],
)
def test_results_are_renamed(name: str, remaps: str, expected: str) -> None:
    """Files, and what is in a directory that is renamed."""
    assert expected == str(destination({"Iwd": "/w", "TransferOutputRemaps": remaps}, name))


@pytest.mark.parametrize(
    "attributes",
    [{"TransferOutput": "a, ../b"}, {"TransferOutput": "/etc/passwd"}, {"TransferOutputRemaps": "a"}],
)
def test_results_that_cannot_be(attributes: Ad) -> None:
    """
    What leads out of the sandbox, and destinations that are none, are found before a machine works for them.
    """
    with pytest.raises(ManifestError):
        check_outputs(attributes)


@pytest.mark.parametrize("attributes", [{"TransferInput": "http://x/"}, {"TransferPlugins": "foo"}])
def test_inputs_that_cannot_be(attributes: Ad) -> None:
    """A URL without a name, and a plugin without a program, are found before a machine works for them."""
    check_outputs(attributes)
    with pytest.raises(ManifestError):
        check_inputs(attributes)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 100 * MIB),
        (10, 10 * MIB),
        (0.5, MIB // 2),
        (0, 0),
        (-1, 100 * MIB),
        (1000, 100 * MIB),
        (Expr("RequestDisk / 1024"), 2 * MIB),
        (Expr("Nothing"), 100 * MIB),
        ("many", 100 * MIB),
        (True, 100 * MIB),
    ],
)
def test_a_limit_of_the_job(value: Scalar | None, expected: int) -> None:
    """A number or an expression over the job, in MiB; the site's limit stands above it."""
    ad: Ad = {"RequestDisk": 2048}
    if value is not None:
        ad = {**ad, "MaxTransferInputMB": value}
    assert expected == limit(ad, "MaxTransferInputMB", 100 * MIB)
