"""The tasks of a job as its ad says them: read, and refused where they make no sense.  Pure."""

import posixpath
from collections.abc import Iterable
from typing import Final

import msgspec

from kettle.transfer.file_lists import ManifestError, is_inside, is_url, name_of_url, scheme_of
from kettle_wire.tasks import ATTRIBUTE, MOST_STEPS, MPI, Artifact, Output, Task, TaskList

FOLDED: Final = ATTRIBUTE.lower()
_DOCKER: Final = "docker"
_OURS: Final = (".", "_condor_")
"""How names of files in a sandbox begin that are not the job's."""

RUNS_IMAGES: Final = {"docker": "HasDockerURL", "sif": "HasSIF", "files": "HasSandboxImage"}
"""What a slot has in its ad that runs images of a form."""


class TasksError(ValueError):
    """Tasks that cannot be run; the message says which, and why."""


def read_tasks(value: object) -> TaskList:
    """
    The tasks that an attribute says.

    Raises:
        TasksError: it says none, or such as cannot be run.
    """
    if not isinstance(value, str):
        raise TasksError(f"{ATTRIBUTE} is a string with the tasks of the job in JSON, and no expression")
    try:
        listed = msgspec.json.decode(value, type=TaskList)
    except msgspec.MsgspecError as error:
        raise TasksError(f"{ATTRIBUTE} cannot be read: {error}") from error
    except UnicodeError as error:
        raise TasksError(f"{ATTRIBUTE} cannot be read: it has a character that no text has") from error
    for number, task in enumerate(listed.tasks):
        if complaint := _of_task(task):
            raise TasksError(f"{ATTRIBUTE}: task {number} {complaint}")
    _together(listed)
    return listed


def retries_of(listed: TaskList, task: Task) -> int:
    """How often this task is tried again after a failure."""
    if task.type == "sidecar":
        return 0
    return listed.retries if task.retries is None else task.retries


def artifact_name(artifact: Artifact) -> str:
    """Its name in the sandbox.  Raises ManifestError: it has none."""
    return artifact.name or name_of_url(artifact.url)


def mounted(artifact: Artifact) -> tuple[str, str]:
    """The name in the sandbox and the path in a container of what an artifact has a mount point for."""
    name, _, path = artifact.mountpoint.partition(":")
    return name, posixpath.normpath(path)


def fetched_image(task: Task) -> str:
    """The URL from which the image of a task is fetched; empty: from none."""
    return task.image if is_url(task.image) and scheme_of(task.image) != _DOCKER else ""


def image_form(task: Task) -> str:
    """`docker`, `sif` or `files`, by its name as a container's image is told; empty: it has none."""
    if not task.image:
        return ""
    if scheme_of(task.image) == _DOCKER:
        return "docker"
    name = name_of_url(url) if (url := fetched_image(task)) else task.image
    return "sif" if name.rstrip("/").endswith(".sif") else "files"


def fetched_images(listed: TaskList) -> dict[str, str]:
    """By URL, the digest that each image is to have that is fetched, in the order of the tasks."""
    return {url: task.sha256 for task in listed.tasks if (url := fetched_image(task))}


def _of_task(task: Task) -> str:
    """What is wrong with a task by itself; empty if nothing is."""
    if task.type in MPI and not task.cmd:
        return f"is of type {task.type} and has no cmd: write the program that runs on each rank"
    if task.ranks and task.type not in MPI:
        return "has ranks, which are those of a task of type openmpi, mpich or intelmpi"
    if not task.cmd and not task.image:
        return "has neither cmd nor image: write cmd, a list of the program and its arguments"
    if task.cmd and not task.cmd[0]:
        return "has an empty program: cmd is a list of the program and its arguments"
    if task.stdout and not _is_own(task.stdout):
        return f"has stdout {task.stdout!r}, which is no name of a file in its sandbox"
    if task.type == "sidecar" and task.retries:
        return "is a sidecar, and these are not tried again: leave retries out"
    return _of_image(task)


def _of_image(task: Task) -> str:
    """What is wrong with its image, or with what it says of that."""
    if task.app and not task.image:
        return "has app, an application of a SCIF image, and no image"
    if task.login and image_form(task) != "docker":
        return "has a login, which is for an image of a registry: docker://NAME"
    if task.sha256 and not fetched_image(task):
        return "has sha256, which is compared where its image is fetched from a URL"
    if (url := fetched_image(task)) and (complaint := _of_url(url)):
        return f"has an image that cannot be fetched: {complaint}"
    return ""


def _of_url(url: str) -> str:
    try:
        name_of_url(url)
    except ManifestError as error:
        return str(error)
    return ""


def _together(listed: TaskList) -> None:
    if all(task.type == "sidecar" for task in listed.tasks):
        raise TasksError(f"{ATTRIBUTE}: all tasks are sidecars, and the job would end at once")
    by_image: dict[str, str] = {}
    for task in listed.tasks:
        if by_image.setdefault(task.image, task.sha256) != task.sha256:
            raise TasksError(f"{ATTRIBUTE}: one image has two digests (sha256)")
    steps = len(listed.artifacts) + len(listed.outputs) + len(fetched_images(listed))
    steps += sum(3 * (retries_of(listed, task) + 1) for task in listed.tasks)
    if steps > MOST_STEPS:
        raise TasksError(
            f"{ATTRIBUTE}: with all retries the tasks may take {steps} steps, and at most {MOST_STEPS} are recorded: "
            "ask for fewer retries"
        )
    _artifacts(listed)
    for output in listed.outputs:
        if complaint := _of_output(output):
            raise TasksError(f"{ATTRIBUTE}: the output {output.name!r} {complaint}")


def _artifacts(listed: TaskList) -> None:
    names = set[str]()
    for number, artifact in enumerate(listed.artifacts):
        if not is_url(artifact.url):
            raise TasksError(f"{ATTRIBUTE}: artifact {number} has {artifact.url!r}, which is no URL")
        try:
            name = artifact_name(artifact)
        except ManifestError as error:
            raise TasksError(f"{ATTRIBUTE}: artifact {number}: {error}; give it a name") from error
        if "/" in name or not _is_own(name):
            raise TasksError(f"{ATTRIBUTE}: artifact {number} has the name {name!r}, which is none of a file")
        if name in names:
            raise TasksError(f"{ATTRIBUTE}: two artifacts have the name {name!r}: give one of them another")
        names.add(name)
        if artifact.mountpoint:
            _mountpoint(artifact, listed.tasks)


def _mountpoint(artifact: Artifact, tasks: Iterable[Task]) -> None:
    name, path = mounted(artifact)
    reserved = path.split("/")[1:2] in [["proc"], ["dev"], ["sys"], [""]]
    if "/" in name or not _is_own(name) or not posixpath.isabs(path) or reserved:
        raise TasksError(
            f"{ATTRIBUTE}: the mount point {artifact.mountpoint!r} is not NAME:/path, a file or directory of the sandbox and "
            "an absolute path other than /, /proc, /dev and /sys"
        )
    for number, task in enumerate(tasks):
        if not task.image:
            raise TasksError(
                f"{ATTRIBUTE}: {name} is to be mounted at {path}, which takes a container, and task {number} names no image"
            )


def _of_output(output: Output) -> str:
    if not _is_own(output.name):
        return "is no path in the sandbox"
    if output.url and not is_url(output.url):
        return f"goes to {output.url!r}, which is no URL"
    return ""


def _is_own(name: str) -> bool:
    """Whether a relative name may be that of a file of the job."""
    return is_inside(name) and not name.startswith(_OURS)
