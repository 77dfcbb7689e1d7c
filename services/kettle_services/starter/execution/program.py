"""From a job's ad to what is executed, and in what."""

import os
import posixpath
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.execution.attempts.job_spec import Isolation, JobSpec
from kettle.execution.containers.policy import ContainerError
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.job_environment.variables import job_environment
from kettle.execution.processes.ancestry import MARK
from kettle.execution.processes.isolation import Enclosure
from kettle.execution.processes.launch import Program
from kettle.execution.sandbox.output_files import STDERR, STDOUT
from kettle.jobs.quoting import split_v1, split_v2
from kettle_wire.codes import HoldCode

if TYPE_CHECKING:
    from kettle.execution.containers.job_container import JobContainer
    from kettle.execution.containers.request import ContainerRequest

_NONE: Final = Isolation()
_CONTAINER: Final = ("ContainerImage", "DockerImage", "WantContainer", "WantDocker")


@cache
def _marks() -> Mapping[str, str]:
    """The pool's marks in the environment of this process, which are all that a job has of it."""
    return {name: value for name, value in os.environ.items() if name.startswith(MARK)}


def container_of(spec: JobSpec, job: JobAd, sandbox: str) -> "tuple[ContainerRequest, JobContainer] | None":
    """
    The container that the job wants, or that the machine's owner has jobs run in.

    Raises:
        ContainerError: what it asks for makes no sense.
    """
    if not any(job.given(name) for name in _CONTAINER) and not (spec.containers and spec.containers.always):
        return None
    if not job.transfers:
        raise ContainerError(
            "a container does not see the file system that the job shares", code=HoldCode.IwdError
        )
    # Imported only now: most jobs want none, and each page costs memory.
    from kettle.execution.containers.job_container import JobContainer
    from kettle.execution.containers.request import container_request

    request = container_request(job, spec.containers, sandbox)
    return None if request is None else (request, JobContainer(spec, request, sandbox))


def program_of(spec: JobSpec, job: JobAd, sandbox: str, inside: str = "") -> Program:
    """
    Program, arguments, environment and streams of the job; `inside`: where the sandbox is for it, if not where it is.

    Raises:
        QuotingError: arguments or environment are not well formed.
        ContainerError: see `enclosure_of`.
    """
    if inside and inside != sandbox:
        spec = msgspec.structs.replace(spec, home="")  # it is not in the container
    if not job.transfers:
        return _in_place(spec, job, sandbox)
    out, err, stdin = job.stream("Out"), job.stream("Err"), job.stream("In")
    stdout = f"{sandbox}/{STDOUT}" if out else os.devnull
    stderr = f"{sandbox}/{STDERR}" if err else os.devnull
    if stdin is not None and job.flag("TransferIn", default=True):
        stdin = posixpath.basename(stdin)
    return Program(
        path=posixpath.join(inside or sandbox, job.command)  # an absolute one stays what it is
        if job.command or not inside
        else "",
        arguments=_arguments(job),
        environment=job_environment(spec, job, inside or sandbox, _marks(), contained=bool(inside)),
        directory=_working(job, inside or sandbox),
        stdin=posixpath.join(sandbox, stdin) if stdin else os.devnull,
        stdout=stdout,
        stderr=stdout if out and out == err else stderr,
        account=spec.account,
        enclosure=None if inside else enclosure_of(spec, job, sandbox),
    )


def enclosure_of(spec: JobSpec, job: JobAd, sandbox: str) -> Enclosure | None:
    """
    How the job's processes are isolated where they are in no container; None: they share everything with the machine.

    One that runs where its files are sees the machine's directories: they are what it wants.  Only where no program gets
    more rights may a job choose directories itself: it could give `sudo` another `/etc`.

    Raises:
        ContainerError: it chooses what this machine does not have.
    """
    isolation = spec.isolation
    if not job.transfers:
        isolation = msgspec.structs.replace(isolation, directories=())
    elif isolation.directories and isolation.no_new_privileges and job.given("MountUnderScratch"):
        directories = (*isolation.directories, *_more_directories(job))
        isolation = msgspec.structs.replace(isolation, directories=tuple(dict.fromkeys(directories)))
    if isolation == _NONE:
        return None
    return Enclosure(
        isolation=isolation, sandbox=sandbox, owner=(spec.schedd, owner_of(job)), memory=spec.memory
    )


def owner_of(job: JobAd) -> str:
    """Whose job it is, as its access point calls the person."""
    return job.text("User") or job.text("Owner") or ""


def _more_directories(job: JobAd) -> list[str]:
    from kettle.execution.containers.request import scratch_directories  # few jobs want that

    wanted = scratch_directories(job)
    for directory in wanted:
        if not os.path.isdir(directory):  # noqa: PTH112 - a string
            raise ContainerError(
                f"mount_under_scratch names {directory!r}, and this machine has no such directory"
            )
    return wanted


def _in_place(spec: JobSpec, job: JobAd, sandbox: str) -> Program:
    """A job that runs where its files are, as its account on this machine; its sandbox is scratch space."""
    iwd = job.text("Iwd") or "/"
    stdin, out, err = (
        posixpath.join(iwd, path) if (path := job.stream(name)) else os.devnull
        for name in ("In", "Out", "Err")
    )
    return Program(
        path=posixpath.join(iwd, job.command),
        arguments=_arguments(job),
        environment=job_environment(spec, job, sandbox, _marks()),
        directory=_working(job, iwd),
        stdin=stdin,
        stdout=out,
        stderr=err,
        account=spec.account,
        enclosure=enclosure_of(spec, job, sandbox),
    )


def _working(job: JobAd, usual: str) -> str:
    """Where the program begins: RemoteIwd, which may be relative to where it usually does."""
    wanted = job.text("RemoteIwd")
    return posixpath.join(usual, wanted) if wanted else usual


def _arguments(job: JobAd) -> list[str]:
    arguments = job.text("Arguments")
    return split_v1(job.text("Args") or "") if arguments is None else split_v2(arguments)
