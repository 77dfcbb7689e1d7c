"""
Which container runtimes work on this machine: each is made to run a program once, in the way in which it will run jobs.
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.job_container import bind, runtime_of
from kettle.execution.containers.policy import ENGINES, ContainerError, FoundRuntime, Network
from kettle.execution.containers.request import TARGET
from kettle.execution.containers.root_directory import Mount, make_mount_points
from kettle.execution.containers.runtimes.runtime import AREA, ContainerSpec, no_check
from kettle.execution.processes.launch import LaunchError, Program
from kettle.execution.sandbox.directory import remove_tree
from kettle.execution.system.linux import become_subreaper, descendants_of, signal_process

if TYPE_CHECKING:
    from kettle.execution.containers.runtimes.engine_client import EngineClient

PROGRAMS: Final = {
    "bubblewrap": "bwrap",
    "runc": "runc",
    "crun": "crun",
    "podman": "podman",
    "docker": "docker",
}
_ROOTS_ONLY: Final = frozenset({"runc", "crun", "docker"})
_MANNERS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "podman": ((), ("--cgroup-manager=cgroupfs",), ("--cgroup-manager=cgroupfs", "--runtime=runc"))
}
"""
Options with which a runtime may do where it does not without: no systemd runs, or its own runtime does not work.
"""
_ONE: Final[tuple[tuple[str, ...], ...]] = ((),)
_CLEARING_S: Final = 10.0
_IMPORTING_S: Final = 60.0
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SYSTEM: Final = ("bin", "lib", "lib32", "lib64", "libx32", "usr")
_TRUE: Final = "/bin/true"
_SYSTEMD: Final = "/run/systemd/system"
"""There, if it is what runs the machine."""
_PREFIX: Final = "probe-"


class ProbeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to try, and how jobs will run."""

    names: list[str]
    place: str
    """A directory that `account` can pass through."""
    account: Account | None
    binds: list[str] = []
    network: Network = "host"
    options: dict[str, list[str]] = {}
    """Of engines' commands, by name."""
    prefix: str = _PREFIX
    """Of the directories that it makes, and removes if a former one has left them: none of two at the same time begins like the other's."""
    patience: float = 15.0
    """Seconds for each trial; an engine, of whose trial many programs are a part, has twice as many."""


class ProbeResult(msgspec.Struct, frozen=True):
    """A runtime, and why it does not work; empty: it does."""

    name: str
    path: str = ""
    why: str = ""
    options: list[str] = []
    """With which it works."""


class _LateError(Exception):
    pass


def probe(order: ProbeOrder) -> Iterator[ProbeResult]:
    """
    Try one after the other, for a process with one thread: it becomes the job's account for a moment, and the parent of
    what runs.

    What a former startd's probe left is removed.
    """
    for left in Path(order.place).glob(f"{order.prefix}*"):
        remove_tree(str(left))
    become_subreaper()
    if os.geteuid() == 0:
        os.setgroups([])
    for name in order.names:
        path = shutil.which(PROGRAMS[name], path=_PATH)
        if path is None:
            yield ProbeResult(name, why="not installed")
        elif name in _ROOTS_ONLY and os.geteuid() != 0:
            yield ProbeResult(
                name, path, "it takes a startd that is root to keep jobs in their control groups"
            )
        else:
            yield _tried(FoundRuntime(name, path, order.options.get(name, [])), order)


def longest(order: ProbeOrder) -> float:
    """Seconds that all trials may take together, with what is cleared away after each."""
    return sum((_patience(name, order) + _CLEARING_S) * len(_MANNERS.get(name, _ONE)) for name in order.names)


def _patience(name: str, order: ProbeOrder) -> float:
    return order.patience * (2 if name in ENGINES else 1)


def _tried(found: FoundRuntime, order: ProbeOrder) -> ProbeResult:
    """In each manner, until one works; the first reason is that of the machine as it is."""
    whys = list[str]()
    for manner in _manners(found.name):
        each = FoundRuntime(found.name, found.path, [*found.options, *manner])
        if not (why := _try(each, order, _patience(found.name, order))):
            return ProbeResult(found.name, found.path, options=each.options)
        whys.append(why)
    return ProbeResult(found.name, found.path, whys[0])


def _manners(name: str) -> tuple[tuple[str, ...], ...]:
    """Those that may work here: the one without options takes systemd, or does as the second one."""
    manners = _MANNERS.get(name, _ONE)
    return manners if len(manners) == 1 or os.path.isdir(_SYSTEMD) else manners[1:]  # noqa: PTH112


def _try(found: FoundRuntime, order: ProbeOrder, seconds: float) -> str:
    """Why it does not work."""
    area = tempfile.mkdtemp(prefix=order.prefix, dir=order.place)
    runtime, image = runtime_of(found), ""
    try:
        with _within(seconds):
            os.chmod(area, 0o711)  # noqa: PTH101, S103 - the job's account must get there
            box = _box(area, order, root=not found.is_engine)
            if found.is_engine:
                image = _imported(found, area)
                box = msgspec.structs.replace(box, image=image)
            _, status = os.waitpid(runtime.start(box, None, no_check), 0)
    except (ContainerError, LaunchError, OSError) as error:
        return str(error)
    except _LateError:
        return f"it did not run {_TRUE} in a container within {seconds:g} s"
    finally:
        _extinguish()
        with contextlib.suppress(_LateError, OSError), _within(_CLEARING_S):  # the next start tidies up
            runtime.end()
            if image:
                _client(found, area).remove_image(image)
        remove_tree(area)
    return "" if status == 0 else f"{_TRUE} in a container ended with status {status}"


def _client(found: FoundRuntime, area: str) -> "EngineClient":
    from kettle.execution.containers.runtimes.engine_client import (
        EngineClient,  # only where there is an engine
    )

    return EngineClient(found, area)


def _imported(found: FoundRuntime, area: str) -> str:
    """An image of links and empty directories, in the engine's store."""
    from kettle.execution.containers.images.engine_store import import_directory

    return import_directory(_client(found, area), f"{area}/image", trial_image(area), timeout=_IMPORTING_S)


def trial_image(area: str) -> str:
    """What a trial's image is called: a directory may end in a letter that no image's name may end in."""
    return f"localhost/kettle-trial-{os.path.basename(area).encode().hex()}"  # noqa: PTH119


def _box(area: str, order: ProbeOrder, *, root: bool) -> ContainerSpec:
    """
    The system's programs in the place of an image, and otherwise what jobs have; `root`: with a root directory.
    """
    image, skeleton, sandbox, place = f"{area}/image", f"{area}/root", f"{area}/sandbox", f"{area}/{AREA}"
    for directory in (image, skeleton, sandbox, place):
        os.mkdir(directory, 0o755)  # noqa: PTH102
    system = [_system(name, image) for name in _SYSTEM if os.path.lexists(f"/{name}")]
    wanted = [
        *(mount for mount in system if mount is not None),
        *(bind(text) for text in order.binds),
        Mount(source=sandbox, destination=TARGET, writable=True),
    ]
    program = Program(
        path=_TRUE, arguments=[], environment={"PATH": "/bin"}, directory=TARGET,
        stdin=os.devnull, stdout=os.devnull, stderr=os.devnull, account=order.account,
    )  # fmt: skip
    mounts = make_mount_points(image, skeleton, wanted) if root else wanted
    return ContainerSpec(
        program=program, sandbox=area, area=place, skeleton=skeleton, mounts=mounts, network=order.network, closed=image
    )  # fmt: skip


@contextlib.contextmanager
def _within(seconds: float) -> Generator[None]:
    def late(_number: int, _frame: FrameType | None) -> NoReturn:
        raise _LateError

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _extinguish() -> None:
    """End what a runtime may have left: all orphans come to us."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in descendants_of(os.getpid()):
                signal_process(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _system(name: str, image: str) -> Mount | None:
    """A directory of the system's programs; where it is a link into another one, the image has that link."""
    if os.path.islink(f"/{name}"):  # noqa: PTH114
        os.symlink(os.readlink(f"/{name}"), f"{image}/{name}")  # noqa: PTH115, PTH211
        return None
    return Mount(source=f"/{name}", destination=f"/{name}")


if __name__ == "__main__":
    for tried in probe(msgspec.json.decode(sys.stdin.buffer.read(), type=ProbeOrder)):
        sys.stdout.buffer.write(msgspec.json.encode(tried) + b"\n")
        sys.stdout.buffer.flush()
