"""Jobs that one process runs one after the other: what the next one finds of its predecessor."""

import ctypes
import os
import pickle
import select
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import pytest

from kettle.execution.attempts.job_spec import Account, Isolation
from kettle.execution.processes.isolation import Enclosure, in_thread
from kettle.execution.processes.kept_namespaces import NamespaceKeeper
from kettle.execution.processes.launch import Program, launch
from kettle.execution.processes.namespaces import mount, why_no_mounts
from kettle.execution.sandbox import private_directories
from kettle.execution.sandbox.directory import Sandbox

WHY_NOT = "only root makes namespaces for jobs" if os.geteuid() != 0 else in_thread(why_no_mounts)
pytestmark = pytest.mark.skipif(
    bool(WHY_NOT), reason=f"this machine lets no job have its own /tmp: {WHY_NOT}"
)

ACCOUNT: Final = Account(54321, 54322)
ISOLATION: Final = Isolation(no_new_privileges=True, directories=("/tmp", "/var/tmp"), shared_memory=True)
PERSON: Final = ("schedd", "alice@pool")
PLACES: Final = ("/tmp", "/var/tmp", "/dev/shm")
SEES: Final = (
    "ls -A /tmp /var/tmp /dev/shm; cat /proc/sysvipc/*; "
    "python3 -c 'import ctypes; print(ctypes.CDLL(None).mq_open(b\"/kettle-left\", 0))'"
)
"""What of an earlier job there could be."""
NEW_MOUNTS, RECURSIVE, PRIVATE, SHARED = 0x20000, 0x4000, 0x40000, 0x100000
T = TypeVar("T")


class Worker:
    """A process that runs jobs, as a starter does."""

    def __init__(self, directory: Path) -> None:
        (directory / "execute").mkdir()
        self.execute = directory / "execute"
        self.keeper = NamespaceKeeper()

    def enclosure(self, person: tuple[str, str], isolation: Isolation, memory: int = 100) -> Enclosure:
        return Enclosure(isolation=isolation, sandbox=f"{self.execute}/dir_1", owner=person, memory=memory)

    def run(
        self,
        text: str,
        *,
        person: tuple[str, str] = PERSON,
        isolation: Isolation = ISOLATION,
        memory: int = 100,
        meanwhile: Callable[[int], object] = lambda pid: os.waitpid(pid, 0),
    ) -> str:
        """What a job of a line of shell has printed; `meanwhile` waits for it."""
        enclosure = self.enclosure(person, isolation, memory)
        sandbox = Sandbox(enclosure.sandbox, ACCOUNT)
        sandbox.make()
        out = f"{sandbox.path}/out"
        program = Program(
            path="/bin/sh", arguments=["-c", text], environment={"PATH": "/usr/bin:/bin"}, directory=sandbox.path,
            stdin=os.devnull, stdout=out, stderr=out, account=ACCOUNT, enclosure=enclosure,
        )  # fmt: skip
        meanwhile(launch(program, None, self.keeper))
        said = Path(out).read_text()
        self.keeper.end_use()
        sandbox.remove()
        return said

    def kept(self) -> bool:
        """Whether the directories of the last job wait for the next one."""
        return (self.execute / f"private_{os.getpid()}").is_dir()


def in_child(work: Callable[[], T]) -> T:
    """Do it in a process of its own: launching changes the process that does it for a moment."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            said = pickle.dumps((work(), ""))
        except BaseException:  # noqa: BLE001 - it is told to the test
            said = pickle.dumps((None, traceback.format_exc()))
        with os.fdopen(tell, "wb") as file:
            file.write(said)
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as file:
        said_by_it: tuple[T, str] = pickle.load(file)
    result, trouble = said_by_it
    os.waitpid(child, 0)
    assert not trouble, trouble
    return result


def test_the_next_job_of_a_person_gets_the_same_ones_empty(directory: Path) -> None:
    """Its process id and all that it sees are as in new ones, and it stands in its directory."""

    def work() -> tuple[list[str], bool]:
        worker = Worker(directory)
        said = [worker.run(f"pwd; id -u; {SEES}") for _ in range(3)]
        return said, worker.kept()

    said, kept = in_child(work)

    assert kept
    assert 1 == len(set(said))
    assert said[0].startswith(f"{directory}/execute/dir_1\n{ACCOUNT.uid}\n")


LEAVES: Final = {
    "file": "touch {place}/x",
    "directory": "mkdir -p {place}/x/y",
    "hidden": "touch {place}/.x",
    "link": "ln -s /etc {place}/x",
    "shared": "ipcmk -M 4096",
    "semaphore": "ipcmk -S 1",
    "messages": "ipcmk -Q",
    "queue": "python3 -c 'import ctypes; ctypes.CDLL(None).mq_open(b\"/kettle-left\", 0o102, 0o666, None)'",
    "moved": "mv .private mine; mkdir .private",
}


@pytest.mark.parametrize(
    "leaves",
    [
        text.format(place=place)
        for text in LEAVES.values()
        for place in (PLACES if "{" in text else PLACES[:1])
    ],
)
def test_what_a_job_leaves_the_next_one_does_not_find(directory: Path, leaves: str) -> None:
    """Then nothing is kept, and the next one gets new ones."""

    def work() -> tuple[str, bool, str]:
        worker = Worker(directory)
        first = worker.run(SEES)
        worker.run(leaves)
        return first, worker.kept(), worker.run(SEES)

    first, kept, last = in_child(work)

    assert not kept
    assert first == last


def test_an_open_directory_of_one_persons_job_shows_nothing_of_anothers(directory: Path) -> None:
    """Neither that, nor a watch on it, nor the way from its root, which somebody has kept."""

    def work() -> tuple[str, list[str], bytes, str]:
        worker = Worker(directory)
        libc = ctypes.CDLL(None)
        watch = libc.inotify_init1(os.O_NONBLOCK)
        opened: list[int] = []

        def spy(pid: int) -> None:
            root = f"/proc/{pid}/root"
            opened.extend(os.open(path, os.O_RDONLY) for path in (root, f"{root}/tmp", f"{root}/dev/shm"))
            libc.inotify_add_watch(watch, f"{root}/tmp".encode(), 0x100)
            os.kill(pid, 9)
            os.waitpid(pid, 0)

        worker.run("sleep 60", meanwhile=spy)

        def look(pid: int) -> None:
            os.waitpid(pid, 0)
            found.extend(name for fd in opened[1:] for name in os.listdir(fd))  # noqa: PTH208 - a descriptor
            found.extend(each.name for each in Path(f"/proc/self/fd/{opened[0]}/tmp").iterdir())

        found: list[str] = []
        said = worker.run(
            "touch /tmp/secret /dev/shm/secret; ls /tmp /dev/shm", person=("schedd", "bob"), meanwhile=look
        )
        seen = os.read(watch, 4096) if select.select([watch], [], [], 0)[0] else b""
        return said, found, seen, worker.run("ls -A /tmp")

    said, found, seen, _ = in_child(work)

    assert 2 == said.count("secret")
    assert "secret" not in found
    assert b"secret" not in seen


@pytest.mark.parametrize(
    "other",
    [
        {"person": ("schedd", "bob@pool")},
        {"person": ("other", "alice@pool")},
        {"memory": 50},
        {"isolation": msgspec.structs.replace(ISOLATION, directories=("/tmp",))},
        {"isolation": msgspec.structs.replace(ISOLATION, shared_memory=False)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_job_of_somebody_else_or_of_another_kind_gets_new_ones(
    directory: Path, other: dict[str, object]
) -> None:
    """Those that wait are removed."""

    def work() -> tuple[int, int]:
        worker = Worker(directory)
        worker.run("true")
        fd = os.open(worker.execute / f"private_{os.getpid()}", os.O_PATH)  # else the number is given again
        worker.run("true", **other)  # type: ignore[arg-type]
        return os.fstat(fd).st_nlink, len(list(worker.execute.iterdir()))

    assert (0, 1) == in_child(work)


def test_they_are_not_kept_where_programs_may_get_rights(directory: Path) -> None:
    """Such a program could have mounted something."""

    def work() -> bool:
        worker = Worker(directory)
        worker.run("true", isolation=msgspec.structs.replace(ISOLATION, no_new_privileges=False))
        return worker.kept()

    assert not in_child(work)


@pytest.mark.parametrize("propagation", [PRIVATE, SHARED], ids=["private", "shared"])
def test_what_the_machine_mounts_between_two_jobs_the_next_one_sees(
    directory: Path, propagation: int
) -> None:
    """Whether or not mounts of the machine reach other namespaces by themselves."""

    def work() -> list[str]:
        ctypes.CDLL(None).unshare(NEW_MOUNTS)
        mount("none", "/", None, RECURSIVE | PRIVATE)
        mount("none", "/", None, RECURSIVE | propagation)
        worker = Worker(directory)
        said = [worker.run("ls /mnt/kettle-new 2>&1")]
        mount("disk", "/mnt", "tmpfs", 0)
        Path("/mnt/kettle-new").touch()
        return [*said, worker.run("ls /mnt/kettle-new")]

    before, after = in_child(work)

    assert "No such file" in before
    assert "/mnt/kettle-new\n" == after


def test_a_job_that_is_started_again_finds_what_it_has_written(directory: Path) -> None:
    """In the same sandbox it has the same directories, until its end."""

    def work() -> tuple[str, bool]:
        worker = Worker(directory)
        worker.run("true")
        said: list[str] = []

        def again(pid: int) -> None:
            os.waitpid(pid, 0)
            enclosure = worker.enclosure(PERSON, ISOLATION)
            second = Program(
                path="/bin/sh", arguments=["-c", "cat /tmp/x >> out"], environment={"PATH": "/usr/bin:/bin"},
                directory=enclosure.sandbox, stdin=os.devnull, stdout=os.devnull, stderr=os.devnull,
                account=ACCOUNT, enclosure=enclosure,
            )  # fmt: skip
            os.waitpid(launch(second, None, worker.keeper), 0)

        said.append(worker.run("echo first > /tmp/x", meanwhile=again))
        return said[0], worker.kept()

    assert ("first\n", False) == in_child(work)


def test_a_startd_that_begins_may_remove_what_waits(directory: Path) -> None:
    """Then the next job gets new ones."""

    def work() -> tuple[str, bool]:
        worker = Worker(directory)
        worker.run("true")
        private_directories.remove_spares(str(worker.execute))
        return worker.run("touch /tmp/x && ls /tmp/x"), worker.kept()

    assert ("/tmp/x\n", False) == in_child(work)


def test_nothing_is_left_when_the_process_ends(directory: Path) -> None:
    """Neither directories nor descriptors."""

    def work() -> tuple[list[Path], bool]:
        worker = Worker(directory)
        before = len(list(Path("/proc/self/fd").iterdir()))
        worker.run("true")
        worker.keeper.drop()
        return list(worker.execute.iterdir()), before == len(list(Path("/proc/self/fd").iterdir()))

    assert ([], True) == in_child(work)
