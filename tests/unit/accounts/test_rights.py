"""Acting with the rights of an account."""

import errno
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kettle.accounts.become import command, environment
from kettle.accounts.rights import Rights, act_as
from kettle.testing.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")

SOMEBODY, SOMEBODY_ELSE = Rights(70_001, 70_002, (70_003, 70_004)), Rights(70_005, 70_006)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that everybody can enter, as those of tests are not."""
    with tempfile.TemporaryDirectory(prefix="kettle-rights-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def ids() -> tuple[int, int, list[int]]:
    return os.geteuid(), os.getegid(), sorted(os.getgroups())


def status(name: str) -> str:
    """A line of the kernel's about this thread."""
    lines = Path("/proc/thread-self/status").read_text().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:"))


def test_an_act_has_the_accounts_ids_and_groups_and_no_capability() -> None:
    """
    Afterwards the thread is what it was; real and saved ids never change, so that the account cannot send signals.
    """
    before = ids(), status("CapEff")
    assert (70_001, 70_002, [70_003, 70_004]) == act_as(SOMEBODY, ids)
    assert 0 == int(act_as(SOMEBODY, lambda: status("CapEff")), 16)
    assert ["0", "70001", "0", "70001"] == act_as(SOMEBODY, lambda: status("Uid")).split()
    assert before == (ids(), status("CapEff"))


def test_acts_may_lie_within_each_other() -> None:
    """Each ends with the rights that it found, ours included."""
    seen: list[int] = []

    def inner() -> None:
        seen.append(os.geteuid())
        act_as(SOMEBODY_ELSE, lambda: seen.append(os.geteuid()))
        act_as(None, lambda: seen.append(os.geteuid()))
        seen.append(os.geteuid())

    act_as(SOMEBODY, inner)
    assert [70_001, 70_005, 0, 70_001] == seen
    assert 0 == os.geteuid()


def test_an_act_that_fails_gives_the_rights_back(reachable: Path) -> None:
    """The error is the kernel's about the account."""
    (reachable / "private").touch(mode=0o600)
    with pytest.raises(PermissionError):
        act_as(SOMEBODY, (reachable / "private").read_bytes)
    assert 0 == os.geteuid()
    with pytest.raises(OSError, match="Invalid argument") as caught:
        act_as(Rights(0xFFFFFFFF - 1, 5, (0xFFFFFFFF,)), ids)
    assert errno.EINVAL == caught.value.errno
    assert 0 == os.geteuid()


def test_threads_have_rights_of_their_own() -> None:
    """While one acts, others are what they are: in a loop with four threads and two accounts."""
    wrong: list[object] = []
    meeting = threading.Barrier(4)

    def loop(rights: Rights | None, expected: int) -> None:
        meeting.wait(PATIENCE_S)
        check: Callable[[], int] = os.geteuid
        wrong.extend(found for _ in range(200) if (found := act_as(rights, check)) != expected)

    with ThreadPoolExecutor(4) as threads:
        for each in [
            threads.submit(loop, rights, expected)
            for rights, expected in ((SOMEBODY, 70_001), (SOMEBODY_ELSE, 70_005), (None, 0), (None, 0))
        ]:
            each.result(PATIENCE_S)
    assert [] == wrong


def test_a_program_becomes_the_account_for_good(reachable: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    All of its ids are the account's, nothing gives others, and it has none of our variables that name something.
    """
    (reachable / "told.py").write_text(
        "import os\nfrom pathlib import Path\n\n"
        "def main(arguments):\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    print(arguments, os.getresuid(), os.getresgid(), os.getgroups(), 'SECRET' in os.environ)\n"
        "    print([line for line in lines if line.startswith(('NoNewPrivs', 'CapPrm'))])\n"
        "    return 3\n"
    )
    monkeypatch.setenv("SECRET", "x")
    variables = environment() | {"PYTHONPATH": f"{reachable}:{':'.join(sys.path)}"}
    done = subprocess.run(
        command(SOMEBODY, "told", ["a"]),
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ids_, flags = done.stdout.splitlines()
    wanted = "['a'] (70001, 70001, 70001) (70002, 70002, 70002) [70003, 70004] False"
    assert (3, wanted, "") == (done.returncode, ids_, done.stderr)
    assert "NoNewPrivs:\\t1" in flags
    assert "CapPrm:\\t0000000000000000" in flags


def test_who_is_in_a_group_reads_what_the_group_may(reachable: Path) -> None:
    """And who is not, does not."""
    path = reachable / "shared"
    path.write_text("of the group")
    os.chown(path, 0, 70_004)
    path.chmod(0o640)
    assert "of the group" == act_as(SOMEBODY, path.read_text)
    with pytest.raises(PermissionError):
        act_as(SOMEBODY_ELSE, path.read_text)
