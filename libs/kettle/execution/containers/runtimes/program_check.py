"""
A check of a container's program from outside, which finds out whether it exists before the job is reported to run.
"""

import errno
import os
import posixpath
import stat
from contextlib import suppress

import msgspec

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.root_directory import Mount, resolve
from kettle.execution.job_environment.variables import PATH
from kettle.execution.processes.launch import Program
from kettle.execution.sandbox.directory import acting_as
from kettle_wire.codes import HoldCode


class ContainerView(msgspec.Struct, frozen=True, kw_only=True):
    """A container before it is there: its root directory, what is mounted on it, and who will look."""

    image: str
    mounts: list[Mount] = []
    account: Account | None = None
    closed: bool = False
    """
    The account cannot get to the image where it is now; in the container it has what the modes let all have.
    """


def find_program(program: Program, view: ContainerView) -> Program:
    """
    The program with its full path.

    Raises:
        ContainerError: it or the interpreter that it names is not there, or is no program for who looks.
    """
    path = program.path
    if "/" not in path:
        places = program.environment.get("PATH", PATH).split(":")
        inside = (posixpath.join(place, path) for place in places if place)
        path = next((p for p in inside if _is_file(p, view)), path)
    path = posixpath.join(program.directory, path)
    head = _head(path, view, "")
    if head.startswith(b"#!"):
        interpreter = head[2:].split(b"\n")[0].strip().split(b" ")[0].decode(errors="replace")
        _head(interpreter, view, f", which {path} names as its interpreter")
    return msgspec.structs.replace(program, path=path)


def _outside(path: str, view: ContainerView) -> str:
    """Where a path of the container is on the machine."""
    with acting_as(None if view.closed else view.account):
        place = "/" + resolve(view.image, path)
    for mount in reversed(view.mounts):
        if place == mount.destination or place.startswith(mount.destination.rstrip("/") + "/"):
            rest = place[len(mount.destination) :].lstrip("/")
            return posixpath.join(mount.source, rest) if rest else mount.source
    return view.image + place


def _is_ours(outside: str, view: ContainerView) -> bool:
    return view.closed and outside.startswith(f"{view.image}/")


def _is_file(path: str, view: ContainerView) -> bool:
    outside = _outside(path, view)
    with acting_as(None if _is_ours(outside, view) else view.account):
        return os.path.isfile(outside)  # noqa: PTH113


def _head(path: str, view: ContainerView, whose: str) -> bytes:
    """The first bytes of a program."""
    outside = _outside(path, view)
    ours = _is_ours(outside, view)
    try:
        if ours and view.account is not None:
            _check_modes(outside, view.image)
        with acting_as(None if ours else view.account):
            return _beginning(outside)
    except OSError as error:
        raise ContainerError(
            f"cannot execute {path} in the container{whose}: {error.strerror}",
            code=HoldCode.FailedToCreateProcess,
            subcode=error.errno or 0,
        ) from error


def _check_modes(outside: str, image: str) -> None:
    """Whether everybody may execute a file of an image, and get to it. Raises OSError."""
    while outside != image:
        if not os.stat(outside).st_mode & 0o001:  # noqa: PTH116
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        outside = posixpath.dirname(outside)


def _beginning(outside: str) -> bytes:
    """Open only files, because opening a device may have any effect."""
    place = os.open(outside, os.O_PATH | os.O_CLOEXEC)
    try:
        mode = os.fstat(place).st_mode
        if not stat.S_ISREG(mode) or not mode & 0o111:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with suppress(PermissionError), open(f"/proc/self/fd/{place}", "rb") as file:  # noqa: PTH123
            return file.read(256)
    finally:
        os.close(place)
    return b""  # it can be executed and not be read
