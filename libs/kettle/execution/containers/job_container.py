"""From a job's request to a running container: choose a runtime, get the image, compose the root, start."""

import os
import posixpath
import stat
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.execution.attempts.job_spec import Input, JobSpec
from kettle.execution.containers.images.archives import ImageConfig
from kettle.execution.containers.images.cache import Image
from kettle.execution.containers.images.sources import brought, image_cache, image_of, of_image
from kettle.execution.containers.policy import ContainerError, ContainerPolicy, FoundRuntime, machine_error
from kettle.execution.containers.preparation import Builder, building
from kettle.execution.containers.request import ContainerRequest, Form
from kettle.execution.containers.root_directory import Mount, make_mount_points
from kettle.execution.containers.runtimes.bubblewrap import Bubblewrap
from kettle.execution.containers.runtimes.oci import Oci
from kettle.execution.containers.runtimes.program_check import ContainerView, find_program
from kettle.execution.containers.runtimes.runtime import (
    AREA,
    MARK,
    ContainerRuntime,
    ContainerSpec,
    StartCheck,
)
from kettle.execution.job_environment.variables import PATH
from kettle.execution.processes.launch import Program
from kettle.execution.sandbox.directory import area_of, remove_tree
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.nvidia import nodes
from kettle_wire.codes import HoldCode

if TYPE_CHECKING:
    from kettle.execution.processes.side_program import SpawnedProgram

_FORMS: Final[dict[str, frozenset[Form]]] = {
    "bubblewrap": frozenset({"files", "sif", "machine"}),
    "runc": frozenset({"files", "sif", "machine"}),
    "crun": frozenset({"files", "sif", "machine"}),
    "podman": frozenset({"files", "sif", "docker"}),
    "docker": frozenset({"files", "sif", "docker"}),
}
_WANT: Final[dict[Form, str]] = {
    "docker": "the name of an image in a registry takes podman or docker",
    "sif": "a SIF image takes bubblewrap, runc, crun, podman or docker",
    "files": "an image of files takes bubblewrap, runc, crun, podman or docker",
    "machine": "a container without an image takes bubblewrap, runc or crun",
}
_NAMES: Final = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")
"""What programs need to find hosts by their names."""


_DIRECTORY: Final = "a directory as an image takes bubblewrap, runc or crun"


def runtime_of(found: FoundRuntime) -> ContainerRuntime:
    """The runtime that was found on the machine, for one container."""
    if found.is_engine:
        from kettle.execution.containers.runtimes.engine import Engine  # each page costs memory

        return Engine(found)
    return Bubblewrap(found.path) if found.name == "bubblewrap" else Oci(found.name, found.path)


class JobContainer:
    """The container of one job, or of one of its tasks."""

    def __init__(
        self,
        spec: JobSpec,
        request: ContainerRequest,
        sandbox: str,
        *,
        area: str = AREA,
        shown: Sequence[tuple[str, str]] = (),
        login: str = "",
    ) -> None:
        """
        `area`: where it is made, in the area of the sandbox; `shown`: names of the sandbox, and where else they are in the container;
        `login`: the job's own, as files of logins have it, with which its image is got from a registry.
        """
        self._login = login
        self._area = f"{area_of(sandbox)}/{area}"
        self._shown = shown
        self._spec = spec
        self._request = request
        self._sandbox = sandbox
        self._lock = -1
        self._runtime: ContainerRuntime | None = None
        self._started: Program | None = None

    def brought(self) -> Input | None:
        """
        The input file that is the image: it is unpacked from where it lies, and the sandbox has no copy of it.
        """
        return brought(self._spec, self._request)

    def preparing(self, program: Program) -> AbstractContextManager[Builder]:
        """
        A child that gets the image and puts the root together, for a program whose paths are those inside.

        Raises:
            ContainerError: no runtime of this machine is for such an image.
        """
        policy = self._spec.containers
        if policy is None or not _fit(policy, self._request):
            raise _unfit(policy, self._request, _WANT[self._request.form])
        return building(lambda: self._made(policy, program), self._sandbox)

    def prepared(self, builder: Builder) -> ContainerSpec:
        """
        What the builder has made.

        Raises:
            ContainerError: the image cannot be had.
        """
        box, self._lock = builder.result()
        return box

    def start(self, box: ContainerSpec, cgroup: Cgroup | None, check: StartCheck) -> int:
        """
        Run the program; returns the pid of the child process that is the job.

        Raises:
            ContainerError: the runtime refuses it.
            LaunchError: a stream of the job cannot be opened.
        """
        assert box.runtime is not None, "it was chosen before anything was made for it"
        self._started = box.program
        self._runtime = runtime_of(box.runtime)
        return self._runtime.start(box, cgroup, check)

    def beside(self, pid: int, cgroup: Cgroup | None, program: Program) -> "SpawnedProgram":
        """
        Begin another program in the container of the job's process. Its streams are its own, the rest is the job's.

        Raises:
            OSError: there can be no process for it.
        """
        # Rarely needed, and each page costs memory.
        from kettle.execution.containers.runtimes.namespaces import enter

        job = self._started
        assert job is not None, "the job runs"
        environment = {**job.environment, **program.environment}
        program = msgspec.structs.replace(program, environment=environment, directory=job.directory)
        return enter(pid, cgroup, program)

    def finish(self) -> None:
        """
        When none of its processes lives: let the image go, and what a runtime has elsewhere; the rest is in the area.
        """
        if self._runtime is not None:
            self._runtime.end()
            self._runtime = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def clear(self) -> None:
        """Take away what was made for the container, to make it again."""
        self.finish()
        remove_tree(self._area)

    def _made(self, policy: ContainerPolicy, program: Program) -> tuple[ContainerSpec, int]:
        try:
            found = self._chosen(policy)
            self._make_area(found)
            image = self._image(policy, found)
            return self._box(policy, found, image, program), image.lock
        except OSError as error:
            why = f"{error.strerror} ({error.filename})" if error.filename else str(error)
            raise machine_error(f"the container's files cannot be prepared: {why}") from error

    def _chosen(self, policy: ContainerPolicy) -> FoundRuntime:
        """
        What is to run the container. A directory is not looked into for that: what is in it may be closed to the job.
        """
        request = self._request
        name = posixpath.basename(request.image.rstrip("/"))
        place = request.image if request.local else f"{self._sandbox}/{name}"
        is_directory = request.form in {"files", "sif"} and os.path.isdir(place)  # noqa: PTH112
        for found in _fit(policy, request):
            if not (found.is_engine and is_directory):
                return found
        raise _unfit(policy, request, _DIRECTORY)

    def _make_area(self, found: FoundRuntime) -> None:
        """
        Only bubblewrap works there as the job's account: for any other the directory is closed, so that a container that has this part
        of the machine does not see its own root a second time.
        """
        with suppress(FileExistsError):  # there are other containers
            os.mkdir(posixpath.dirname(self._area), 0o711)  # noqa: PTH102
        os.mkdir(self._area, 0o700)  # noqa: PTH102
        if found.name == "bubblewrap" and self._spec.account is not None:
            os.chown(self._area, -1, self._spec.account.gid)
            os.chmod(self._area, 0o710)  # noqa: PTH101, S103 - it has to pass through

    def _image(self, policy: ContainerPolicy, found: FoundRuntime) -> Image:
        request = self._request
        if not found.is_engine:
            return image_of(self._spec, request, image_cache(policy), self._sandbox)
        from kettle.execution.containers.images.engine_store import (
            EngineStore,  # each page costs memory
        )

        store = EngineStore(found, policy, self._sandbox, self._area)
        if request.form == "docker":
            return store.pulled(request.image, always=request.pull_always, login=self._login)
        return image_of(self._spec, request, store, self._sandbox)

    def _box(
        self, policy: ContainerPolicy, found: FoundRuntime, image: Image, program: Program
    ) -> ContainerSpec:
        wanted = self._wanted(policy)
        box = ContainerSpec(
            program=with_image_config(
                program, image.config, self._sandbox, under=self._request.under_entrypoint
            ),
            sandbox=self._sandbox,
            area=self._area,
            skeleton="",
            mounts=wanted,
            network=self._request.network,
            runtime=found,
            fresh=image.fresh,
            size=image.config.size,
        )
        if found.is_engine and self._shown:  # it follows links, with its own rights
            raise ContainerError("mount points of artifacts take bubblewrap, runc or crun")
        if (
            found.is_engine
        ):  # it makes the root and names hosts; only in the container is there something to look at
            mounts = [mount for mount in wanted if not mount.optional and mount.destination != "/sys"]
            return msgspec.structs.replace(box, mounts=mounts, image=image.config.reference)
        return self._furnished(box, image)

    def _furnished(self, box: ContainerSpec, image: Image) -> ContainerSpec:
        """With a root directory, and a program that is in it."""
        skeleton = f"{box.area}/root"
        os.mkdir(skeleton, 0o755)  # noqa: PTH102
        closed = image.lock >= 0
        try:
            mounts = make_mount_points(
                image.root, skeleton, box.mounts, None if closed else self._spec.account
            )
        except ContainerError as error:
            raise of_image(self._request, error) from error
        view = ContainerView(image=image.root, mounts=mounts, account=self._spec.account, closed=closed)
        return msgspec.structs.replace(
            box,
            program=find_program(box.program, view),
            skeleton=skeleton,
            mounts=mounts,
            closed=image.root if closed else "",
        )

    def _wanted(self, policy: ContainerPolicy) -> list[Mount]:
        """What is mounted beside the image, parents before what is in them."""
        machine = self._request.form == "machine"
        mounts = [
            Mount(source=path, destination=path, optional=True) for path in _NAMES if os.path.exists(path)  # noqa: PTH110
        ] if self._request.network == "host" and not machine else []  # fmt: skip
        for number, path in enumerate(self._request.scratch):
            mounts.append(Mount(source=self._scratch(number), destination=path, writable=True))
        mounts += [bind(text) for text in policy.binds]
        devices = nodes(policy.devices, self._spec.devices.get("GPUs", []))
        if machine or devices:
            mounts.append(Mount(source="/sys", destination="/sys"))
        mounts += [Mount(source=path, destination=path, writable=True, device=True) for path in devices]
        mounts.append(Mount(source=self._sandbox, destination=self._request.directory, writable=True))
        mounts += [self._seen(name, path) for name, path in self._shown]
        last = {mount.destination: mount for mount in mounts}
        return sorted(last.values(), key=lambda mount: mount.destination.count("/"))

    def _seen(self, name: str, path: str) -> Mount:
        """
        What is shown at another place, too.  The job may put anything in its place at any moment: a runtime with more rights
        than the job has mounts what was looked at, or nothing.
        """
        source = f"{self._sandbox}/{name}"
        try:
            about = os.lstat(source)
        except OSError as error:
            raise ContainerError(f"there is no {name} to be mounted at {path}") from error
        if stat.S_ISLNK(about.st_mode):
            raise ContainerError(f"{name}, which is to be mounted at {path}, is a link")
        return Mount(source=source, destination=path, writable=True, identity=(about.st_dev, about.st_ino))

    def _scratch(self, number: int) -> str:
        path = f"{self._area}/scratch{number}"
        os.mkdir(path, 0o700)  # noqa: PTH102
        if self._spec.account is not None:
            os.chown(path, self._spec.account.uid, self._spec.account.gid)
        return path


def bind(text: str) -> Mount:
    """A bind mount as an administrator writes it; raises ValueError."""
    parts = text.split(":")
    writable = parts[-1] == "rw"
    paths = parts[:-1] if parts[-1] in {"ro", "rw"} else parts
    if not 1 <= len(paths) <= 2 or not all(posixpath.isabs(path) for path in paths):
        raise ValueError(
            f"{text!r} is not SOURCE, SOURCE:DESTINATION or either with :rw, with absolute paths"
        )
    destination = "/" + posixpath.normpath(paths[-1]).lstrip("/")
    if destination in {"/", "/proc", "/dev", "/sys"} or destination.startswith("/proc/"):
        raise ValueError(f"{text!r} would cover {destination}, which every container has from elsewhere")
    return Mount(source=paths[0], destination=destination, writable=writable)


def _fit(policy: ContainerPolicy, request: ContainerRequest) -> list[FoundRuntime]:
    """The runtimes that run such an image, the most preferred first."""
    return [
        found
        for found in policy.runtimes
        if request.form in _FORMS.get(found.name, frozenset()) and (found.is_engine or not request.engine)
    ]


def _unfit(policy: ContainerPolicy | None, request: ContainerRequest, why: str) -> ContainerError:
    have = ", ".join(found.name for found in policy.runtimes) if policy is not None else ""
    return ContainerError(
        f"this machine cannot run the image {request.image}: {why}, and here is {have or 'none of them'}"
    )


def with_image_config(program: Program, config: ImageConfig, sandbox: str, *, under: bool = False) -> Program:
    """
    With what the image says about how it is run: its search path, its variables, its entry point, which gets the program as
    its argument if that runs `under` it.
    """
    given = dict(entry.split("=", 1) for entry in config.env if entry.find("=") > 0)
    own = dict(program.environment)
    helpers = own.get("_CONDOR_BIN", "")
    if own.get("PATH") == f"{PATH}:{helpers}":
        own["PATH"] = f"{given.get('PATH', PATH)}:{helpers}"
    environment = {"PATH": PATH, **given, **own, MARK: sandbox}
    if program.path and under and config.entrypoint:
        words = [*config.entrypoint[1:], program.path, *program.arguments]
        return msgspec.structs.replace(
            program, path=config.entrypoint[0], arguments=words, environment=environment
        )
    if program.path:
        return msgspec.structs.replace(program, environment=environment)
    words = [*config.entrypoint, *(program.arguments or config.command)]
    if not words:
        raise ContainerError(
            "the job names no executable, and the image has no entry point: write executable = ...",
            code=HoldCode.FailedToCreateProcess,
        )
    return msgspec.structs.replace(program, path=words[0], arguments=words[1:], environment=environment)
