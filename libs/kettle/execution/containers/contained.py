"""
From a job's wish to a running container: choose a runtime, get the image, put the root together, start.
"""

import errno
import os
import posixpath
import stat
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.execution.attempt import Input, JobSpec
from kettle.execution.cgroups import Cgroup
from kettle.execution.containers.box import AREA, MARK, Box, Check, Runtime
from kettle.execution.containers.bubblewrap import Bubblewrap
from kettle.execution.containers.builder import Builder, building
from kettle.execution.containers.cache import Image
from kettle.execution.containers.images import brought, image_of, of_image
from kettle.execution.containers.oci import Oci
from kettle.execution.containers.policy import BAD_PROGRAM, ContainerError, ContainerPolicy, Found, broken
from kettle.execution.containers.request import Form, Request
from kettle.execution.containers.roots import Mount, furnish, resolve
from kettle.execution.containers.unpack import ImageConfig
from kettle.execution.environment import PATH
from kettle.execution.nvidia import nodes
from kettle.execution.process import Program
from kettle.execution.sandbox import acting_as, remove_tree

if TYPE_CHECKING:
    from kettle.execution.beside import Birth

_FORMS: Final[dict[str, frozenset[Form]]] = {
    "bubblewrap": frozenset({"files", "machine"}),
    "runc": frozenset({"files", "machine"}),
    "crun": frozenset({"files", "machine"}),
}
_WANT: Final[dict[Form, str]] = {
    "docker": "the name of an image in a registry takes docker, podman or apptainer",
    "sif": "a SIF image takes apptainer or singularity",
    "files": "an image of files takes bubblewrap, runc or crun",
    "machine": "a container without an image takes bubblewrap, runc or crun",
}
_NAMES: Final = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf")
"""What programs need to find hosts by their names."""


def runtime_of(found: Found) -> Runtime:
    """
    The runtime that was found on the machine.
    """
    return Bubblewrap(found.path) if found.name == "bubblewrap" else Oci(found.name, found.path)


class Contained:
    """
    The container of one job.
    """

    def __init__(self, spec: JobSpec, request: Request, sandbox: str) -> None:
        self._spec = spec
        self._request = request
        self._sandbox = sandbox
        self._lock = -1
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
        _chosen(policy, self._request)
        assert policy is not None
        return building(lambda: self._made(policy, program), self._sandbox)

    def prepared(self, builder: Builder) -> Box:
        """
        What the builder has made.

        Raises:
            ContainerError: the image cannot be had.
        """
        box, self._lock = builder.result()
        return box

    def start(self, box: Box, cgroup: Cgroup | None, check: Check) -> int:
        """
        Run the program; the pid of the child of ours that is the job.

        Raises:
            ContainerError: the runtime will not have it.
            LaunchError: a stream of the job cannot be opened.
        """
        self._started = box.program
        return _chosen(self._spec.containers, self._request).start(box, cgroup, check)

    def beside(self, pid: int, cgroup: Cgroup | None, program: Program) -> "Birth":
        """
        Begin another program in the container of the job's process. Its streams are its own, the rest is the job's.

        Raises:
            OSError: there can be no process for it.
        """
        from kettle.execution.containers.entering import (
            enter,
        )  # rarely needed, and a starter pays for every page

        job = self._started
        assert job is not None, "the job runs"
        environment = {**job.environment, **program.environment}
        program = msgspec.structs.replace(program, environment=environment, directory=job.directory)
        return enter(pid, cgroup, program)

    def finish(self) -> None:
        """
        Let the image go; everything else is in the sandbox.
        """
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def clear(self) -> None:
        """
        Take away what was made for the container, to make it again.
        """
        self.finish()
        remove_tree(f"{self._sandbox}/{AREA}")

    def _made(self, policy: ContainerPolicy, program: Program) -> tuple[Box, int]:
        try:
            image = image_of(self._spec, self._request, policy, self._sandbox)
            return self._box(policy, image, program), image.lock
        except OSError as error:
            why = f"{error.strerror} ({error.filename})" if error.filename else str(error)
            raise broken(f"the container's files cannot be prepared: {why}") from error

    def _box(self, policy: ContainerPolicy, image: Image, program: Program) -> Box:
        area = f"{self._sandbox}/{AREA}"
        skeleton = f"{area}/root"
        try:
            os.mkdir(area, 0o755)  # noqa: PTH102
        except FileExistsError as error:
            raise ContainerError(f"no input file may be named {AREA}: containers are made there") from error
        os.mkdir(skeleton, 0o755)  # noqa: PTH102
        reader = self._spec.account if image.lock < 0 else None  # what is in the cache is for everybody
        try:
            wanted = [self._alone(mount) for mount in self._wanted(policy, area)]
            mounts = furnish(image.root, skeleton, wanted, reader)
        except ContainerError as error:
            raise of_image(self._request, error) from error
        program = _completed(program, image.config, self._sandbox)
        with acting_as(self._spec.account):
            program = _checked(program, image.root, mounts)
        return Box(
            program=program, area=area, skeleton=skeleton, mounts=mounts, network=self._request.network
        )

    def _wanted(self, policy: ContainerPolicy, area: str) -> list[Mount]:
        """
        What is mounted beside the image, parents before what is in them.
        """
        machine = self._request.form == "machine"
        mounts = [
            Mount(source=path, destination=path, optional=True) for path in _NAMES if os.path.exists(path)  # noqa: PTH110
        ] if self._request.network == "host" and not machine else []  # fmt: skip
        for number, path in enumerate(self._request.scratch):
            mounts.append(Mount(source=self._scratch(area, number), destination=path, writable=True))
        mounts += [bind(text) for text in policy.binds]
        devices = nodes(policy.devices, self._spec.devices.get("GPUs", []))
        if machine or devices:
            mounts.append(Mount(source="/sys", destination="/sys"))
        mounts += [Mount(source=path, destination=path, writable=True, device=True) for path in devices]
        mounts.append(Mount(source=self._sandbox, destination=self._request.directory, writable=True))
        last = {mount.destination: mount for mount in mounts}
        return sorted(last.values(), key=lambda mount: mount.destination.count("/"))

    def _alone(self, mount: Mount) -> Mount:
        """
        Nothing of a sandbox takes along what is mounted in it: that is the root of this container.
        """
        ours = f"{mount.source}/".startswith(f"{self._sandbox}/")
        return msgspec.structs.replace(mount, alone=True) if ours else mount

    def _scratch(self, area: str, number: int) -> str:
        path = f"{area}/scratch{number}"
        os.mkdir(path, 0o700)  # noqa: PTH102
        if self._spec.account is not None:
            os.chown(path, self._spec.account.uid, self._spec.account.gid)
        return path


def bind(text: str) -> Mount:
    """
    A bind mount as an administrator writes it; raises ValueError.
    """
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


def _chosen(policy: ContainerPolicy | None, request: Request) -> Runtime:
    for found in policy.runtimes if policy is not None else []:
        if request.form in _FORMS.get(found.name, frozenset()) and not request.engine:
            return runtime_of(found)
    have = ", ".join(found.name for found in policy.runtimes) if policy is not None else ""
    raise ContainerError(
        f"this machine cannot run the image {request.image}: {_WANT[request.form]}, and here is {have or 'none of them'}"
    )


def _completed(program: Program, config: ImageConfig, sandbox: str) -> Program:
    """
    With what the image says about how it is run: its search path, its variables, its entry point.
    """
    given = dict(entry.split("=", 1) for entry in config.env if entry.find("=") > 0)
    own = dict(program.environment)
    if own.get("PATH") == PATH:
        own.pop("PATH")
    environment = {"PATH": PATH, **given, **own, MARK: sandbox}
    if program.path:
        return msgspec.structs.replace(program, environment=environment)
    words = [*config.entrypoint, *(program.arguments or config.command)]
    if not words:
        raise ContainerError(
            "the job names no executable, and the image has no entry point: write executable = ...",
            code=BAD_PROGRAM,
        )
    return msgspec.structs.replace(program, path=words[0], arguments=words[1:], environment=environment)


def _checked(program: Program, image: str, mounts: list[Mount]) -> Program:
    """
    The program with its full path; that it and its interpreter are there is found out before the job is said to run.
    """
    path = program.path
    if "/" not in path:
        places = program.environment.get("PATH", PATH).split(":")
        inside = (posixpath.join(place, path) for place in places if place)
        path = next((p for p in inside if os.path.isfile(_outside(p, image, mounts))), path)  # noqa: PTH113
    path = posixpath.join(program.directory, path)
    head = _head(path, _outside(path, image, mounts), "")
    if head.startswith(b"#!"):
        interpreter = head[2:].split(b"\n")[0].strip().split(b" ")[0].decode(errors="replace")
        _head(interpreter, _outside(interpreter, image, mounts), f", which {path} names as its interpreter")
    return msgspec.structs.replace(program, path=path)


def _outside(path: str, image: str, mounts: list[Mount]) -> str:
    """
    Where a path of the container is on the machine.
    """
    place = "/" + resolve(image, path)
    for mount in reversed(mounts):
        if place == mount.destination or place.startswith(mount.destination.rstrip("/") + "/"):
            rest = place[len(mount.destination) :].lstrip("/")
            return posixpath.join(mount.source, rest) if rest else mount.source
    return image + place


def _head(path: str, outside: str, whose: str) -> bytes:
    """
    The first bytes of a program; nothing else is opened: what a device does when it is opened nobody knows.
    """
    try:
        place = os.open(outside, os.O_PATH | os.O_CLOEXEC)
        try:
            mode = os.fstat(place).st_mode
            if not stat.S_ISREG(mode) or not mode & 0o111:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            with suppress(PermissionError), open(f"/proc/self/fd/{place}", "rb") as file:  # noqa: PTH123
                return file.read(256)
        finally:
            os.close(place)
    except OSError as error:
        raise ContainerError(
            f"cannot execute {path} in the container{whose}: {error.strerror}",
            code=BAD_PROGRAM,
            subcode=error.errno or 0,
        ) from error
    return b""  # it can be executed and not be read
