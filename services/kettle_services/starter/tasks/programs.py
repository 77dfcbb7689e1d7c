"""From a task to its program, and to the container in which that runs."""

import errno
import os
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.containers.policy import ContainerError
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.processes.ancestry import MARK
from kettle.execution.processes.launch import LaunchError, Program
from kettle.tasks.applications import in_application
from kettle.tasks.reading import fetched_image, mounted
from kettle.transfer.file_lists import name_of_url
from kettle_services.starter.execution.program import program_of
from kettle_wire.codes import HoldCode
from kettle_wire.tasks import HOME, MPI, Task, TaskList

if TYPE_CHECKING:
    from kettle.execution.containers.job_container import JobContainer
    from kettle.execution.containers.request import ContainerRequest

_OF_IMAGES: Final = frozenset({
    "containerimage", "containerimagesource", "dockerimage", "wantcontainer", "wantdocker", "wantdockerimage", "wantsif",
    "wantsandboximage",
})  # fmt: skip
"""Attributes by which a job says its image, in lower case: a task says its own."""
_TMP: Final = "/tmp"  # noqa: S108 - the container's own
_MB_IN_GB: Final = 1000
_LAUNCHERS: Final = {
    "openmpi": ("mpirun",),
    "mpich": ("mpiexec.hydra",),
    "intelmpi": ("mpiexec.hydra", "-genvnone"),
}
"""
The name of a launcher that is not another implementation's where several are installed, and what it is to be told by words: Intel's has
no variable that keeps the environment of this node from the others.
"""


def ad_of(job: JobAd, task: Task) -> JobAd:
    """The job's ad as if the task were all of it."""
    ad = {name: value for name, value in job.whole.items() if name.lower() not in _OF_IMAGES}
    if task.image:
        ad |= {"ContainerImage": image_of(task), "WantContainer": True}
        if not job.given("ContainerTargetDir"):
            ad["ContainerTargetDir"] = HOME
    return JobAd(ad)


def image_of(task: Task) -> str:
    """Its image as a job's ad would say it: what was fetched is in the sandbox."""
    return name_of_url(url) if (url := fetched_image(task)) else task.image


def container_of_task(
    spec: JobSpec, ad: JobAd, listed: TaskList, sandbox: str, area: str, login: str = ""
) -> "tuple[ContainerRequest, JobContainer] | None":
    """
    The container of a task, made in this area; None: it runs in none.  `login`: with which its image is got, if the task has one.

    Raises:
        ContainerError: what the job asks for makes no sense.
    """
    if not ad.given("ContainerImage") and not (spec.containers and spec.containers.always):
        return None
    # Imported only now: each page costs memory, and not all jobs with tasks have containers.
    from kettle.execution.containers.job_container import JobContainer
    from kettle.execution.containers.request import container_request

    request = container_request(ad, spec.containers, sandbox)
    if request is None:
        return None
    shown = [mounted(artifact) for artifact in listed.artifacts if artifact.mountpoint]
    return request, JobContainer(spec, request, sandbox, area=area, shown=shown, login=login)


def program_of_task(
    spec: JobSpec, ad: JobAd, listed: TaskList, number: int, sandbox: str, inside: str = ""
) -> Program:
    """
    The program of a task; `inside`: where the sandbox is for it, if it is in a container.

    Raises:
        QuotingError: the job's environment is not well formed.
        ContainerError: it is to be isolated in a way that this machine does not have.
        LaunchError: there is no such program.
    """
    task = listed.tasks[number]
    program = program_of(spec, ad, sandbox, inside)
    home = {"HOME": inside, **dict.fromkeys(("TMP", "TEMP", "TMPDIR"), _TMP)} if inside else {"HOME": sandbox}
    environment = {
        **program.environment,
        **home,
        **_said_to_tasks(spec, listed, number, program.environment),
        **_said_to_ranks(task),
        **task.env,
        **{name: value for name, value in program.environment.items() if name.startswith(MARK)},
    }
    directory = posixpath.join(inside or sandbox, task.workdir)
    words = _launched(task, program.environment)
    path, arguments = (words[0], words[1:]) if words else ("", [])
    if path and not inside:
        path = _found(path, directory, environment)
    return msgspec.structs.replace(
        program,
        path=path,
        arguments=arguments,
        environment=environment,
        directory=directory,
        stdout=f"{sandbox}/{task.stdout}" if task.stdout else program.stdout,
    )


def _launched(task: Task, environment: Mapping[str, str]) -> list[str]:
    """Program and arguments: of an MPI task those of its launcher, as it is started in a job of ours."""
    words = in_application(task.app, task.cmd) if task.app else list(task.cmd)
    if task.type not in MPI:
        return words
    return [f"{environment['_CONDOR_BIN']}/kettle_mpi", *_LAUNCHERS[task.type], *words]


def _said_to_ranks(task: Task) -> dict[str, str]:
    """What `kettle_mpi` and `kettle_rsh` are told in the environment of a task."""
    if task.type not in MPI:
        return {}
    ranks = {"KETTLE_RANKS": str(task.ranks)} if task.ranks else {}
    return {"KETTLE_MPI_ENV": " ".join(["PROMINENCE_TASK_NUM", *task.env]), **ranks}


def _said_to_tasks(
    spec: JobSpec, listed: TaskList, number: int, environment: Mapping[str, str]
) -> dict[str, str]:
    """What a task is told in its environment, with the names of PROMINENCE."""
    own = {
        "CPUS": spec.cpus,
        "MEMORY": max(1, round(spec.memory / _MB_IN_GB)),
        "NODES": environment.get("_CONDOR_NPROCS", "1"),
        "NODE_NUM": environment.get("_CONDOR_PROCNO", "0"),
        "TASK_NUM": number,
        "JOB_ID": spec.job.cluster,
        "CONTAINER_RUNTIME": "none",
        **({"WORKFLOW_ID": listed.workflow} if listed.workflow else {}),
    }
    return {f"PROMINENCE_{name}": str(value) for name, value in own.items()}


def in_runtime(program: Program, runtime: str) -> Program:
    """The program, told what its container is made by."""
    told = {**program.environment, "PROMINENCE_CONTAINER_RUNTIME": runtime}
    return msgspec.structs.replace(program, environment=told)


def _found(path: str, directory: str, environment: Mapping[str, str]) -> str:
    """A program without a container, which is looked for as a shell would."""
    if "/" in path:
        return posixpath.join(directory, path)
    for place in environment.get("PATH", "").split(":"):
        if place and os.access(found := posixpath.join(place, path), os.X_OK) and os.path.isfile(found):  # noqa: PTH113
            return found
    raise LaunchError(
        "program",
        errno.ENOENT,
        f"cannot execute {path}: it is in none of the directories of PATH; "
        "a file of the sandbox is written ./NAME",
    )


def refuse_shared(job: JobAd) -> None:
    """
    Tasks share a sandbox, which a job that runs where its files are does not have for itself.

    Raises:
        ContainerError: it is such a job.
    """
    if not job.transfers:
        raise ContainerError(
            "a job of several tasks has a sandbox of its own: leave should_transfer_files = NO out",
            code=HoldCode.IwdError,
        )
