"""A slot's account has nothing left outside of the sandbox when its job is over."""

import ctypes
import itertools
import os
import tempfile
from pathlib import Path
from typing import Final

import pytest

from kettle.execution.attempts.job_spec import Account
from kettle.execution.sandbox.account_remains import AccountRemains, owned

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
ACCOUNT: Final = Account(1_734_221, 1_734_221)
OTHER: Final = 1_734_222
_PRIVATE: Final = 0
_MADE: Final = 0o1600
"""IPC_CREAT, and for the owner only."""


def segments(uid: int) -> list[str]:
    """Kinds of what an account has of System V."""
    return [
        kind
        for kind, column in (("shm", 7), ("sem", 4), ("msg", 7))
        for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]
        if line.split()[column] == str(uid)
    ]


def as_account(uid: int, place: Path) -> None:
    """Leave files, directories that forbid everything, and segments, as a job of the account."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            deep = place / f"of{uid}" / "a" / "b"
            deep.mkdir(parents=True)
            (deep / "file").write_text("secret")
            deep.chmod(0)
            (place / f"file{uid}").write_text("secret")
            (place / f"link{uid}").symlink_to("/etc/passwd")
            libc = ctypes.CDLL(None, use_errno=True)
            made = [
                libc.shmget(_PRIVATE, 4096, _MADE),
                libc.semget(_PRIVATE, 1, _MADE),
                libc.msgget(_PRIVATE, _MADE),
            ]
            status = int(min(made) < 0)
        finally:
            os._exit(status)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@needs_root
@pytest.mark.parametrize("begins", [True, False])
def test_what_an_account_left_is_removed_and_nothing_else(tmp_path: Path, *, begins: bool) -> None:
    """Files, trees, links and segments go; those of others stay, and what a link names too."""
    tmp_path.chmod(0o1777)
    for above in itertools.takewhile(lambda each: each != Path(tempfile.gettempdir()), tmp_path.parents):
        above.chmod(0o755)
    remains = AccountRemains(ACCOUNT, [str(tmp_path), str(tmp_path / "absent")], begins=begins)
    others = AccountRemains(Account(OTHER, OTHER), [str(tmp_path)], begins=False)
    try:
        as_account(ACCOUNT.uid, tmp_path)
        as_account(OTHER, tmp_path)
        (tmp_path / "ours").write_text("")
        assert ["shm", "sem", "msg"] == segments(ACCOUNT.uid) == segments(OTHER)
        remains.remove()
        assert [f"file{OTHER}", f"link{OTHER}", f"of{OTHER}", "ours"] == sorted(
            path.name for path in tmp_path.iterdir()
        )
        assert [] == segments(ACCOUNT.uid)
        assert ["shm", "sem", "msg"] == segments(OTHER)
    finally:
        others.remove()
        AccountRemains(ACCOUNT, [str(tmp_path)], begins=False).remove()
    assert Path("/etc/passwd").exists()
    assert [] == segments(OTHER)


def test_a_directory_that_nobody_wrote_to_needs_no_look(tmp_path: Path) -> None:
    """A job that left nothing costs a look at the time of each directory."""
    mine = Account(os.geteuid() or 1, os.getegid())
    (tmp_path / "before").write_text("")
    os.utime(tmp_path, (0, 0))
    remains = AccountRemains(mine, [str(tmp_path)])
    remains.remove()
    assert (tmp_path / "before").exists()


def test_what_others_remove_meanwhile_hides_nothing(tmp_path: Path) -> None:
    """A file that is gone between the listing and the look at it is nobody's; the account's own are found beside it."""
    for name in ("a", "gone", "z"):
        (tmp_path / name).write_text("")
    with os.scandir(tmp_path) as listing:
        entries = list(listing)
    (tmp_path / "gone").unlink()

    assert [("a", False), ("z", False)] == sorted(owned(entries, os.geteuid()))
    assert [] == list(owned(entries, os.geteuid() + 1))
