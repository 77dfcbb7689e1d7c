"""The files of a job's owner, as the job reads and changes them."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle_services.shadow.chirp.remote_files import MOST_OPEN, FileWish, RemoteFiles
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.commands.chirp import (
    CloseFile,
    OnFile,
    OnPath,
    OpenFile,
    ReadFile,
    SeekFile,
    Trouble,
    WriteFile,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "pool" / "home"
    home.mkdir(parents=True)
    (home / "secret").write_text("the pool's")
    return home


@pytest.fixture
def iwd(tmp_path: Path) -> Path:
    iwd = tmp_path / "work"
    iwd.mkdir()
    return iwd


@pytest.fixture
def files(iwd: Path, home: Path) -> Iterator[RemoteFiles]:
    files = RemoteFiles(str(iwd), FileAccess(home), threading.BoundedSemaphore(MOST_OPEN + 1))
    yield files
    files.close()


def test_a_file_is_written_and_read(files: RemoteFiles, iwd: Path) -> None:
    """In order, at a place, in strides; relative to the directory of the submission."""
    fd = files.carry_out(OpenFile("a", "rwct", 0o600)).result

    assert 6 == files.carry_out(WriteFile(fd, b"abcdef")).result
    assert 2 == files.carry_out(WriteFile(fd, b"XY", 1)).result
    assert b"aXYdef" == (iwd / "a").read_bytes()
    assert 1 == files.carry_out(SeekFile(fd, 1, 0)).result
    assert b"XYd" == files.carry_out(ReadFile(fd, 3)).data
    assert b"aXef" == files.carry_out(ReadFile(fd, 4, 0, (2, 4))).data
    assert 0 == files.carry_out(OnFile("ftruncate", fd, [3])).result
    assert 0 == files.carry_out(CloseFile(fd)).result
    assert Trouble.BAD_FD == files.carry_out(ReadFile(fd, 1)).result
    assert b"aXY" == (iwd / "a").read_bytes()


def test_files_are_looked_at_and_changed(files: RemoteFiles, iwd: Path) -> None:
    """With the names of the protocol."""
    (iwd / "a").write_text("hello")
    wishes: list[FileWish] = [
        OnPath("mkdir", ["d"], [0o700]), OnPath("rename", ["a", "d/b"]), OnPath("symlink", ["b", "d/c"]),
        OnPath("link", ["d/b", "d/e"]), OnPath("chmod", ["d/b"], [0o600]), OnPath("truncate", ["d/b"], [4]),
        OnPath("access", ["d/b"], [4]), OnPath("utime", ["d/b"], [1, 2]),
    ]  # fmt: skip

    assert [0] * 8 == [files.carry_out(wish).result for wish in wishes]
    assert b"b\nc\ne\n" == files.carry_out(OnPath("getdir", ["d"])).data
    assert b"b" == files.carry_out(OnPath("readlink", ["d/c"], [100])).data
    numbers = files.carry_out(OnPath("stat", ["d/c"])).data.split()
    assert (13, b"4", b"2") == (len(numbers), numbers[7], numbers[11])
    assert 7 == len(files.carry_out(OnPath("statfs", ["d"])).data.split())
    assert 6 == len(files.carry_out(OnPath("getlongdir", ["d"])).data.splitlines())
    assert Trouble.NOT_EMPTY == files.carry_out(OnPath("rmdir", ["d"])).result
    assert 0 == files.carry_out(OnPath("rmall", ["d"])).result
    assert [] == list(iwd.iterdir())


@pytest.mark.parametrize(
    ("wish", "trouble"),
    [
        (OpenFile("none", "r"), Trouble.DOESNT_EXIST),
        (OpenFile(".", "r"), Trouble.IS_DIR),
        (OpenFile("pipe", "r"), Trouble.NOT_AUTHORIZED),
        (OpenFile("/dev/null", "r"), Trouble.NOT_AUTHORIZED),
        (OpenFile("/proc/self/mem", "rw"), Trouble.NOT_AUTHORIZED),
        (OpenFile("/proc/self/environ", "r"), Trouble.NOT_AUTHORIZED),
        (OpenFile("memory", "rw"), Trouble.NOT_AUTHORIZED),
        (OpenFile("/proc/self/cwd/a", "r"), Trouble.NOT_AUTHORIZED),
        (OpenFile("/proc/self/new", "wc"), Trouble.NOT_AUTHORIZED),
        (OpenFile("/sys/kernel/uevent_seqnum", "r"), Trouble.NOT_AUTHORIZED),
        (OpenFile("/dev/new", "wc"), Trouble.NOT_AUTHORIZED),
        (OpenFile("round", "r"), Trouble.INVALID_REQUEST),
        (OpenFile("a/", "r"), Trouble.NOT_DIR),
        (OnPath("getdir", ["/proc/self/fd"]), Trouble.NOT_AUTHORIZED),
        (OnPath("rmall", ["/proc"]), Trouble.NOT_AUTHORIZED),
        (OnPath("truncate", ["memory"], [0]), Trouble.NOT_AUTHORIZED),
        (OpenFile("a", "wcx"), Trouble.ALREADY_EXISTS),
        (OpenFile("a\0b", "r"), Trouble.INVALID_REQUEST),
        (OpenFile("", "r"), Trouble.DOESNT_EXIST),
        (OnPath("unlink", [".."]), Trouble.INVALID_REQUEST),
        (OnPath("unlink", []), Trouble.INVALID_REQUEST),
        (OnPath("format", ["a"]), Trouble.INVALID_REQUEST),
        (ReadFile(7, 1), Trouble.BAD_FD),
    ],
)
def test_what_cannot_be_done_is_told(files: RemoteFiles, iwd: Path, wish: FileWish, trouble: Trouble) -> None:
    """
    In the protocol's words; nobody waits at a pipe, and no device and nothing that the kernel makes up is opened.
    """
    os.mkfifo(iwd / "pipe")
    (iwd / "memory").symlink_to("/proc/self/mem")
    (iwd / "round").symlink_to("round")
    (iwd / "a").touch()

    assert trouble == files.carry_out(wish).result


def test_the_pools_own_directory_is_not_to_be_had(files: RemoteFiles, iwd: Path, home: Path) -> None:
    """Not by its path, not by a link to it or into it, and not by taking away what it lies in."""
    (iwd / "link").symlink_to(home)
    (iwd / "file").symlink_to(home / "secret")
    wishes: list[FileWish] = [
        OpenFile(str(home / "secret"), "r"), OpenFile("link/secret", "r"), OpenFile("file", "r"),
        OpenFile("file", "w"), OpenFile("link/new", "wc"), OnPath("stat", ["file"]), OnPath("getdir", ["link"]),
        OnPath("unlink", ["link/secret"]), OnPath("rename", ["link/secret", "mine"]), OnPath("rmall", ["../pool"]),
        OnPath("link", ["link/secret", "mine"]), OnPath("rename", ["../pool", "mine"]),
        OnPath("rename", [str(home), "mine"]), OnPath("chmod", ["file"], [0o666]), OnPath("truncate", ["file"], [0]),
        OnPath("chmod", ["../pool"], [0]), OnPath("chown", ["../pool"], [os.getuid(), os.getgid()]),
        OnPath("lchown", ["../pool"], [os.getuid(), os.getgid()]), OnPath("chmod", [str(home)], [0]),
    ]  # fmt: skip

    assert [Trouble.NOT_AUTHORIZED] * len(wishes) == [files.carry_out(wish).result for wish in wishes]
    assert "the pool's" == (home / "secret").read_text()
    assert [home / "secret"] == list(home.iterdir())


def test_a_job_has_not_all_files_open(files: RemoteFiles, iwd: Path) -> None:
    """So many, and room for more when it closes one."""
    (iwd / "a").touch()
    opened = [files.carry_out(OpenFile("a", "r")).result for _ in range(MOST_OPEN + 1)]

    assert Trouble.TOO_MANY_OPEN == opened[-1]
    files.carry_out(CloseFile(opened[0]))
    assert files.carry_out(OpenFile("a", "r")).result > 0


@pytest.mark.slow
def test_a_tree_deeper_than_a_stack_is_removed(files: RemoteFiles, iwd: Path) -> None:
    """With few descriptors, and nothing of it is left."""
    (iwd / "top").mkdir()
    here = os.open(iwd / "top", os.O_PATH)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        there = os.open("d", os.O_PATH, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)

    assert 0 == files.carry_out(OnPath("rmall", ["top"])).result
    assert [] == list(iwd.iterdir())


def test_links_are_followed_as_the_kernel_does(files: RemoteFiles, iwd: Path) -> None:
    """Relative and absolute ones, in the middle and at the end, and past `..`."""
    (iwd / "a" / "b").mkdir(parents=True)
    (iwd / "a" / "file").write_text("found")
    (iwd / "in").symlink_to(iwd / "a" / "b")
    (iwd / "a" / "b" / "up").symlink_to("../file")

    assert [5] * 2 == [
        files.carry_out(ReadFile(files.carry_out(OpenFile(path, "r")).result, 9)).result
        for path in ("in/up", "in/../file")
    ]


def test_all_jobs_together_have_not_all_files_open(iwd: Path, home: Path) -> None:
    """Another job's file has room again when the first job's is closed, or its run is over."""
    (iwd / "a").touch()
    room = threading.BoundedSemaphore(1)
    one, other = (RemoteFiles(str(iwd), FileAccess(home), room) for _ in range(2))
    one.carry_out(OpenFile("a", "r"))

    assert Trouble.TOO_MANY_OPEN == other.carry_out(OpenFile("a", "r")).result
    one.close()
    assert Trouble.DOESNT_EXIST == other.carry_out(OpenFile("none", "r")).result
    assert other.carry_out(OpenFile("a", "r")).result > 0
    other.close()
