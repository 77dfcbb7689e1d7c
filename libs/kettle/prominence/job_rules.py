"""What must hold in the document of a job beside the form of its parts."""

import posixpath
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kettle.prominence.faults import Fault, below
from kettle.prominence.shapes import Rule
from kettle_wire.prominence.job import (
    Artifact,
    B2Drop,
    Credential,
    InputFile,
    Job,
    JobNotification,
    OneData,
    Placement,
    Policies,
    Resources,
    Sites,
    Storage,
    Task,
    WebDav,
)
from kettle_wire.tasks import MPI

PLACES: Final[Mapping[type[msgspec.Struct], str]] = {
    Job: "job description",
    Resources: "resources",
    Task: "task",
    Credential: "imagePullCredential",
    Policies: "policies",
    Placement: "placement policy",
    Sites: "requirements or preferences",
    InputFile: "input",
    Artifact: "artifact",
    Storage: "storage",
    B2Drop: "b2drop",
    OneData: "onedata",
    WebDav: "webdav",
    JobNotification: "notifications",
}
"""What the parts of a job are called, in the words of the service that people know."""

_DEFAULT_NODES: Final = 1


def _resources(resources: Resources, pointer: str) -> Iterator[Fault]:
    for names, values in (
        (
            ("cpus", "cpusRange", "cpusOptions"),
            (resources.cpus, resources.cpus_range, resources.cpus_options),
        ),
        (("memory", "memoryPerCpu"), (resources.memory, resources.memory_per_cpu)),
    ):
        given = [name for name, value in zip(names, values, strict=True) if value is not None]
        if not given:
            yield Fault(pointer, f"one of {', '.join(names)} must be given in resources")
        elif len(given) > 1:
            yield Fault(pointer, f"{' and '.join(given)} exclude each other in resources: leave one of them")
    for name, bounds in (("cpusRange", resources.cpus_range), ("totalCpusRange", resources.total_cpus_range)):
        if bounds and bounds[0] > bounds[1]:
            yield Fault(below(pointer, name), f"{name} must begin with the smaller number, not {bounds[0]}")
    if resources.total_cpus_range and resources.nodes != _DEFAULT_NODES:
        yield Fault(pointer, "nodes and totalCpusRange exclude each other in resources: leave one of them")
    for name, value in (("gpuMemory", resources.gpu_memory), ("gpuModels", resources.gpu_models)):
        if value and not resources.gpus:
            yield Fault(below(pointer, name), f"{name} chooses among the GPUs that gpus asks for; add gpus")


def _task(task: Task, pointer: str) -> Iterator[Fault]:
    if task.app and task.runtime == "udocker":
        yield Fault(below(pointer, "app"), "app is for the runtime singularity only")
    if task.cmd is not None:
        yield from _command(task.cmd, task.type, below(pointer, "cmd"))
    elif task.type in MPI:
        yield Fault(pointer, f"a task of type {task.type} needs cmd: the program that runs on each rank")
    if task.procs_per_node and task.type not in MPI:
        yield Fault(
            below(pointer, "procsPerNode"), "procsPerNode is for tasks of type openmpi, mpich, intelmpi"
        )
    for name in task.env:
        if name.upper().startswith("PROMINENCE_"):
            yield Fault(below(pointer, "env", name), f"{name} is set by the system: choose another name")


def _command(cmd: str, kind: str, pointer: str) -> Iterator[Fault]:
    try:
        words = shlex.split(cmd)
    except ValueError as error:
        yield Fault(pointer, f"cmd cannot be split into words: {str(error).lower()}")
        return
    if words and not words[0]:
        yield Fault(pointer, "cmd begins with an empty word, which is no program")
    elif kind in MPI and not words:
        yield Fault(pointer, f"a task of type {kind} needs cmd: the program that runs on each rank")
    elif kind in MPI and words[0] in {"mpirun", "mpiexec"}:
        yield Fault(pointer, f"cmd must not begin with {words[0]}: a task of type {kind} is started by it")


def _storage(storage: Storage, pointer: str) -> Iterator[Fault]:
    if getattr(storage, storage.type) is None:
        yield Fault(pointer, f"{storage.type} is missing in storage: it says how to get there")


def _job(job: Job, pointer: str) -> Iterator[Fault]:
    if all(task.type == "sidecar" for task in job.tasks):
        yield Fault(
            below(pointer, "tasks"), "a job needs a task that is no sidecar: sidecars end with the others"
        )
    names: set[str] = set()
    for number, file in enumerate(job.inputs):
        if (name := posixpath.basename(file.filename)) in names:
            where = below(pointer, "inputs", number, "filename")
            yield Fault(where, f"two inputs are called {name}: only the last part of a filename is kept")
        names.add(name)
    most = max_cpus(job.resources)
    for number, task in enumerate(job.tasks):
        if task.procs_per_node and task.procs_per_node > most:
            yield Fault(
                below(pointer, "tasks", number, "procsPerNode"),
                f"procsPerNode is {task.procs_per_node}, and the job has at most {most} CPUs on a node",
            )


def max_cpus(resources: Resources) -> int:
    """The most CPUs that the job may get on one node."""
    if resources.cpus is not None:
        return resources.cpus
    return max(resources.cpus_range or resources.cpus_options or [1])


RULES: Final[Mapping[type[msgspec.Struct], Rule]] = {
    Resources: _resources,
    Task: _task,
    Storage: _storage,
    Job: _job,
}
