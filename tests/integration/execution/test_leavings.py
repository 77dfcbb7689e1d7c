"""
What jobs leave behind that is hard to carry: names that are no text, too many files, trees without end, closed doors.
"""

import asyncio
import errno
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kettle.execution.sandbox.directory import Sandbox, remove_tree
from kettle.execution.sandbox.kept_results import DIRECTORY
from kettle.testing.patience import PATIENCE_S
from kettle.testing.processes import end_parent
from kettle.testing.submit_side import SubmitSide, inline, script
from kettle.testing.worker import WorkerPool
from kettle_wire.worker_reports import FinalReport, Started, not_made

MEMORY = "/dev/shm"
DEEP = "deep=$(printf 'd/%.0s' $(seq 1500)); mkdir -p $deep; echo x > ${deep}bottom"


def unlike_streams(exited: FinalReport) -> set[str]:
    assert exited.result.exit is not None, exited
    return {file.name for file in exited.outputs if not file.name.startswith("_condor")}


@pytest.mark.parametrize("listed", [None, "."])
async def test_a_name_that_is_no_text_counts_as_missing(submitter: SubmitSide, listed: str | None) -> None:
    """With its bytes written as escapes; what else the job left comes back."""
    attributes = {} if listed is None else {"TransferOutput": listed}

    exited = await submitter.run(script("echo x > \"$(printf '\\377x')\"; echo good > good", **attributes))

    assert exited.result.exit is not None
    assert not_made(["\\xffx"]) == exited.result.ending
    assert "good" in unlike_streams(exited)
    assert not any("\udcff" in name for name in unlike_streams(exited))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs jobs that run as another account")
async def test_a_job_leaves_nothing_to_the_next_in_its_account(submitter: SubmitSide) -> None:
    """Files in directories that everybody may write to, and segments of System V, go with the job."""
    name = f"kettle-left-{secrets.token_hex(8)}"
    segments = 'grep -c " $(id -u) " /proc/sysvipc/shm'
    leaves = (
        f"mkdir -p /tmp/{name}/d; echo x > /tmp/{name}/d/f; chmod 0 /tmp/{name}; echo x > /dev/shm/{name}"
    )
    left = await submitter.run(script(f"{leaves}; ipcmk -M 4096; test $({segments}) = 1"))
    looked = await submitter.run(
        script(f"test ! -e /tmp/{name} && test ! -e /dev/shm/{name} && ! {segments}")
    )

    assert [0, 0] == [one.result.exit.code for one in (left, looked) if one.result.exit is not None]
    assert not Path("/tmp", name).exists()
    assert not Path(MEMORY, name).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs jobs that run as another account")
async def test_a_sandbox_goes_although_something_elsewhere_stays(pool: WorkerPool) -> None:
    """
    A directory of the account on which something is mounted cannot be removed, and keeps nothing else from it.
    """
    async with pool.startd() as startd:
        activation = await pool.submitter.start(script("while test ! -e done; do sleep 0.02; done"))
        started = await pool.submitter.hear(activation, lambda report: isinstance(report.body, Started))
        assert isinstance(started.body, Started)
        account = Path(f"/proc/{started.body.pid}").stat().st_uid
        (sandbox,) = pool.execute.glob("dir_*")
        with mounted(account) as (busy, beside):
            (sandbox / "done").touch()
            exited = await pool.submitter.final(activation)
            assert exited.result.exit is not None
            assert not sandbox.exists()
            assert not beside.exists()
            assert busy.is_mount()
        await startd.drain()


@contextmanager
def mounted(account: int) -> Generator[tuple[Path, Path]]:
    """
    A directory of an account in a place for all, with a file system on it; and a file of the account beside it.
    """
    busy = Path(tempfile.mkdtemp(prefix="kettle-busy-", dir="/tmp"))
    beside = busy.with_name(f"{busy.name}-beside")
    beside.touch()
    os.chown(beside, account, account)
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"uid={account}", "tmpfs", busy], check=True)
    try:
        yield busy, beside
    finally:
        subprocess.run(["/bin/umount", busy], check=True)
        busy.rmdir()
        beside.unlink(missing_ok=True)


@pytest.fixture
def directory(directory: Path) -> Generator[Path]:
    """
    In memory where that can be: some file systems take a second to make a thousand files after as many were removed.
    """
    if not os.access(MEMORY, os.W_OK):
        yield directory
        return
    path = Path(tempfile.mkdtemp(prefix="kettle-", dir=MEMORY))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@pytest.mark.parametrize(
    "text",
    ["seq 10001 | xargs touch", "long=$(printf '%0240d' 0); seq -f \"%.0f$long\" 5000 | xargs touch"],
)
async def test_more_files_than_a_report_can_name_hold_the_job(submitter: SubmitSide, text: str) -> None:
    """Code 12, and a sentence that says how many are too many; the next job of the claim runs."""
    activation = await submitter.start(script(text))

    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 12) == (failed.result.ending.holds, failed.result.ending.code)
    assert "10000 files" in failed.result.ending.reason
    following = await submitter.start(script("true"), claim=activation.key)
    assert (await submitter.final(following)).result.exit is not None


async def test_ten_thousand_files_are_not_too_many(submitter: SubmitSide) -> None:
    """The standard streams count as well."""
    exited = await submitter.run(script("seq 9998 | xargs touch"))

    assert 9998 == len(unlike_streams(exited))


@pytest.mark.parametrize("listed", ["", "d"])
async def test_a_tree_deeper_than_a_stack_is_nothing_special(pool: WorkerPool, listed: str) -> None:
    """Its files come back if they are wanted, and it is removed."""
    async with pool.startd() as startd:
        exited = await pool.submitter.run(script(DEEP, TransferOutput=listed))

        assert ({"d/" * 1500 + "bottom"} if listed else set()) == unlike_streams(exited)
        await startd.drain()
    assert [] == pool.sandboxes


async def test_a_tree_is_removed_after_a_starter_that_died(pool: WorkerPool) -> None:
    """The startd outlives what the starter of the deep job left."""
    async with pool.startd() as startd:
        (made := pool.home / "made").touch()
        made.chmod(0o666)
        activation = await pool.submitter.start(script(f"{DEEP}; echo all >{made}; sleep 600"))
        started = await pool.submitter.hear(activation, lambda report: isinstance(report.body, Started))
        assert isinstance(started.body, Started)
        async with asyncio.timeout(PATIENCE_S):
            while not made.read_text():
                await asyncio.sleep(0.01)
        end_parent(started.body.pid)
        failed = await pool.submitter.final(activation)

        assert failed.result.exit is None

        assert failed.result.ending is not None
        assert (False, 1007) == (failed.result.ending.holds, failed.result.ending.code)
        assert [] == pool.sandboxes
        await startd.drain()


async def test_a_sandbox_that_its_job_closed_holds_the_job(submitter: SubmitSide) -> None:
    """The results cannot be had by the job's own rights: code 12 and the errno, once."""
    if os.geteuid() != 0:
        pytest.skip("needs jobs that run as another account")
    activation = await submitter.start(script("echo x > x; chmod 000 ."))

    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 12, 13) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )
    assert 1 == len({r.sequence for r in submitter.reports if isinstance(r.body, Started)})


async def test_an_output_of_which_no_copy_can_be_made_holds_the_job(submitter: SubmitSide) -> None:
    """
    The job has put a file where large results wait under names that are directories': code 12 and the errno.
    """
    text = f"mkdir a b; head -c 100000 /dev/zero > a/b; touch {DIRECTORY}"

    exited = await submitter.run(script(text, TransferOutput="a/b"))

    assert exited.result.ending is not None
    assert (12, errno.ENOTDIR) == (exited.result.ending.code, exited.result.ending.subcode)
    assert DIRECTORY in exited.result.ending.reason


async def test_names_of_inputs_that_exclude_each_other_hold_the_job(submitter: SubmitSide) -> None:
    """Code 13: on no other machine would it be different."""
    failed = await submitter.run(script("true"), inputs=[inline("a", b""), inline("a/b", b"")])

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 13) == (failed.result.ending.holds, failed.result.ending.code)


def test_a_tree_without_rights_is_removed(directory: Path) -> None:
    """Modes of zero at every level, links that lead out, and what they lead to stays."""
    outside = directory / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    tree = directory / "tree"
    (tree / "a" / "b" / "c").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_text("x")
    (tree / "a" / "link").symlink_to(outside)
    (tree / "a" / "b" / "link").symlink_to(outside / "kept")
    for path in (tree / "a" / "b" / "c", tree / "a" / "b", tree / "a", tree):
        path.chmod(0)
    mode = stat.S_IMODE(outside.stat().st_mode)

    remove_tree(str(tree))

    assert not tree.exists()
    assert ("x", mode) == ((outside / "kept").read_text(), stat.S_IMODE(outside.stat().st_mode))


def test_what_a_link_leads_to_stays(directory: Path) -> None:
    """
    A job has put it in the place of a directory of its own: files that are right in there are no files of the tree.
    """
    victim = directory / "victim"
    victim.mkdir()
    (victim / "kept").write_text("x")
    (directory / "tree").symlink_to(victim)

    with pytest.raises(NotADirectoryError):
        remove_tree(str(directory / "tree"))

    assert "x" == (victim / "kept").read_text()


def test_a_deep_tree_is_measured(directory: Path) -> None:
    """Without a stack as deep."""
    tree = directory / "tree"
    tree.mkdir()
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)

    assert Sandbox(str(tree)).size_kib() >= 0
    remove_tree(str(tree))
    assert not tree.exists()
