"""
docker and podman: the engine makes the container, and the job in it is a child of the starter.

The processes of an engine are children of its own, in control groups of its own, and their ends are reported in its own
way. So it starts nothing of a job: it starts a holder, which does nothing (see `holder`), in a container
with the job's image, mounts and network.  The job joins the namespaces of that container as a child of the starter, in
the starter's control group, as the account of its slot: it is treated like any other job.

A container ends with its starter: the holder reads from a pipe that the starter has.  Its remains in an engine are
found by its name, which is derived from the sandbox's.
"""

import hashlib
import os
import platform
import posixpath
import re
import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from kettle.execution.containers.policy import ContainerError, FoundRuntime, machine_error
from kettle.execution.containers.root_directory import Mount
from kettle.execution.containers.runtimes.engine_client import (
    REMOVING_S,
    EngineClient,
    EngineError,
    SilentError,
    plain,
)
from kettle.execution.containers.runtimes.holder import holder
from kettle.execution.containers.runtimes.namespaces import HolderIdentity, enter, identified, lives
from kettle.execution.containers.runtimes.program_check import ContainerView, find_program
from kettle.execution.containers.runtimes.runtime import AREA, STARTING_S, ContainerSpec, StartCheck, awaited
from kettle.execution.processes.launch import open_streams
from kettle.execution.processes.side_program import SpawnedProgram, SpawnError
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import parent_of
from kettle.retry.deadline import Deadline
from kettle_wire.codes import HoldCode

_OWN: Final = {
    "docker": ("--userns=host",),
    "podman": ("--read-only-tmpfs=false", "--image-volume=ignore", "--http-proxy=false", "--systemd=false"),
}
_LABEL: Final = "kettle.execute"
_SILENT_S: Final = 2.0
"""For an engine that did not answer to remove what it may have made; else the startd has it removed later."""
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
"""How the kernel writes a blank in a path."""


def container_name(sandbox: str) -> str:
    """What the container of a sandbox is called; no other sandbox's has that name."""
    return f"kettle-{hashlib.sha256(os.path.realpath(sandbox).encode()).hexdigest()[:24]}"


def _name_of(box: ContainerSpec) -> str:
    """
    What a container is called: a sandbox's first one by that, further ones with what their area is called.
    """
    further = posixpath.basename(box.area).removeprefix(AREA).lstrip(".")
    return f"{container_name(box.sandbox)}-{further}" if further else container_name(box.sandbox)


def label(execute: str) -> str:
    """The label that distinguishes the containers of an execute directory from others."""
    return f"{_LABEL}={hashlib.sha256(os.path.realpath(execute).encode()).hexdigest()[:24]}"


def holders_place() -> str:
    """
    Where a holder is in its container; the job's account cannot look into it.  No two containers have the same, so no link
    in an image leads there, by which what a job brings would be executed in the holder's place.
    """
    return f"/.kettle-{secrets.token_hex(8)}"


def arguments(name: str, box: ContainerSpec, place: str, *, root: bool) -> list[str]:
    """
    How the container of a box is made by the engine `name`, with its holder in `place`; `root`: its accounts are the
    machine's.

    Raises:
        ContainerError: something cannot be passed to the engine.
    """
    users = _OWN[name] if name == "docker" else (*_OWN[name], "--userns=host" if root else "--userns=keep-id")
    mounts = [
        word
        for mount in (Mount(source=f"{box.area}/hold", destination=place), *_separately(box.mounts))
        for word in ("--mount", _mount(mount))
    ]
    return [
        "run", "--detach", "--rm", "--pull=never", "--name", _name_of(box),
        "--label", label(posixpath.dirname(box.sandbox)), "--log-driver=none", "--no-healthcheck",
        f"--network={box.network}", "--pid=host", "--uts=host", "--ipc=private", *users,
        "--user=0:0" if root else f"--user={os.geteuid()}:{os.getegid()}",
        "--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--workdir=/",
        # An engine would give it as many as it has itself, which may be more than we may have.
        "--ulimit=nofile=256:256", "--ulimit=nproc=4096:4096",
        *mounts, f"--entrypoint={place}/holder", plain(box.image, "the image"), f"{place}/line",
    ]  # fmt: skip


def _mount(mount: Mount) -> str:
    source, destination = (plain(path, "the path") for path in (mount.source, mount.destination))
    options = "" if mount.writable else ",readonly,bind-nonrecursive"
    return f"type=bind,source={source},destination={destination}{options}"


def _separately(mounts: Sequence[Mount]) -> Iterator[Mount]:
    """Each, and what is mounted below those that are read-only: for an engine only the mount itself is so."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    points = dict.fromkeys(_OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split()[4]) for line in lines)
    for mount in mounts:
        yield mount
        source = "" if mount.writable else os.path.realpath(mount.source)
        for point in points:
            if source and point.startswith(f"{source}/"):
                below = f"{mount.destination}{point[len(source) :]}"
                yield msgspec.structs.replace(mount, source=point, destination=below)


class Engine:
    """`docker` or `podman`, as it was found; one container."""

    def __init__(self, found: FoundRuntime) -> None:
        self._found = found
        self._line = -1
        self._container = ""
        self._patience = REMOVING_S

    def start(self, box: ContainerSpec, cgroup: Cgroup | None, check: StartCheck) -> int:
        """See `Runtime`."""
        pid, held = self._hold(box, check)
        program = box.program
        with ExitStack() as undo:
            try:
                pidfd = identified(pid, held, undo)
                root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                raise self._ended() from error
            undo.callback(os.close, root)
            if not lives(pidfd):
                raise self._ended()
            program = find_program(
                program, ContainerView(image=f"/proc/self/fd/{root}", account=program.account)
            )
            first, second, third = open_streams(program, undo)
            check(pid)
            program = msgspec.structs.replace(program, streams=(first, second, third))
            try:
                job = _joined(enter(pid, cgroup, program, held), check)
            except ContainerError as error:
                if not lives(pidfd):
                    raise self._ended() from error
                raise
            self._dismiss(pid)
            return job

    def end(self) -> None:
        """See `Runtime`."""
        if self._line >= 0:
            os.close(self._line)
            self._line = -1
        if self._container:
            remove_container(self._found, self._container, patience=self._patience)
            self._container = ""

    def _ended(self) -> ContainerError:
        return machine_error(f"{self._found.name} made a container that ended at once")

    def _hold(self, box: ContainerSpec, check: StartCheck) -> tuple[int, HolderIdentity]:
        """Have the container made; the pid of its holder, and what to know it by."""
        place = f"{box.area}/hold"
        os.mkdir(place, 0o700)  # noqa: PTH102
        program = holder(platform.machine())
        if program is None:
            raise machine_error(
                f"{self._found.name}: there is no holder of containers for {platform.machine()}"
            )
        with open(f"{place}/holder", "wb") as file:  # noqa: PTH123
            file.write(program)
            os.fchmod(file.fileno(), 0o755)
            about = os.fstat(file.fileno())
        os.mkfifo(f"{place}/line", 0o600)
        # Open for both directions: opening only one would block until the other side opens.
        self._line = os.open(f"{place}/line", os.O_RDWR | os.O_CLOEXEC)
        client = EngineClient(self._found, box.sandbox, check)
        words = arguments(self._found.name, box, holders_place(), root=os.geteuid() == 0)
        self._container = _name_of(box)
        self._patience = _SILENT_S
        deadline = Deadline(STARTING_S)
        try:
            client.run(*words, timeout=STARTING_S)
            left = max(1.0, deadline.left())
            said = client.run(
                "container", "inspect", "--format={{.State.Pid}}", self._container, timeout=left
            )
        except EngineError as error:
            if not isinstance(error, SilentError):
                self._patience = REMOVING_S
            raise machine_error(f"{self._found.name} could not make the container: {error}") from error
        self._patience = REMOVING_S
        if not said.isdigit() or said == "0":
            raise self._ended()
        self._leave_alone(int(said))
        return int(said), HolderIdentity(
            program=(about.st_dev, about.st_ino),
            devices=[mount.destination for mount in box.mounts if mount.device],
            bound=[os.stat(mount.source).st_dev for mount in box.mounts if not mount.device],  # noqa: PTH116
        )

    def _dismiss(self, held: int) -> None:
        """
        End a holder that is our child, as podman's is when its monitor has ended: the job now keeps its namespaces, and
        the resources that were used to make them must not be counted as the job's.  Docker would remove the container's
        mounts.
        """
        if parent_of(held) == os.getpid():
            os.kill(held, signal.SIGKILL)
            os.waitpid(held, 0)

    def _leave_alone(self, held: int) -> None:
        """
        Podman's monitor has nothing more to do, and is our child like all orphans: without it the holder is.
        """
        monitor = parent_of(held)
        if self._found.name == "podman" and monitor is not None and parent_of(monitor) == os.getpid():
            os.kill(monitor, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(monitor, 0)


def _joined(birth: SpawnedProgram, check: StartCheck) -> int:
    """The pid of the job's program, when it is that."""
    try:
        if not awaited(birth.told, check):
            _late()
        birth.finish()
    except SpawnError as error:
        _reap(birth)
        raise ContainerError(str(error), code=HoldCode.FailedToCreateProcess) from error
    except BaseException:
        _reap(birth)
        raise
    return birth.pid


def _late() -> NoReturn:
    raise machine_error(f"the job could not be put into its container within {STARTING_S:g} s")


def _reap(birth: SpawnedProgram) -> None:
    birth.abandon()
    with suppress(ChildProcessError):
        os.waitpid(birth.pid, 0)


def remove_container(
    found: FoundRuntime,
    container: str,
    *,
    patience: float = REMOVING_S,
    watch: Callable[[], None] = lambda: None,
) -> bool:
    """
    Whether nothing is left of a container after `patience` seconds, or when `watch` has raised an EngineError.
    """
    try:
        return EngineClient(found, watch=watch).remove(container, patience=patience)
    except EngineError:
        return False
    except OSError:
        return False


def remove_containers(engines: Sequence[FoundRuntime], sandbox: str, watch: Callable[[], None]) -> bool:
    """Whether no engine has a container of a sandbox any more."""
    name = container_name(sandbox)
    gone = [remove_container(found, name, watch=watch) for found in engines]  # each, whatever one says
    return all(gone)


def leftovers(engines: Sequence[FoundRuntime], execute: Path, watch: Callable[[], None]) -> Iterator[str]:
    """
    Remove the containers of an execute directory that belong to none of its sandboxes; their names.

    Raises:
        EngineError, OSError: an engine cannot be asked.
    """
    for found in engines:
        named = EngineClient(found, watch=watch).containers(label(str(execute)))
        # A sandbox is made before its container, and removed after it.
        known = {container_name(str(path)) for path in execute.glob("dir_*")}
        for name in named:
            if name.rpartition("-")[0] in known or name in known:
                continue
            if not remove_container(found, name, watch=watch):
                break  # it would not do it with the others either, and each costs its time
            yield name
