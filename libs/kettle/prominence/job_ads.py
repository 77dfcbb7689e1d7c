"""
From the document of a job to what the schedd takes: the ad of the job, with its tasks, and its input files.

    memory          1 GB of a document is 1000 MiB
    disk            1 GB of a document is 1 GiB; of several nodes each has its part
    walltime        limits the tasks; the whole run is ended after three times as long
"""

import glob
import math
import posixpath
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from kettle.classad.nodes import Literal, Logical, Node, Parentheses
from kettle.jobs.image_registries import SERVICE, token_name
from kettle.jobs.needed_tokens import HANDLE, SERVICES
from kettle.prominence.carried_out import node_range, not_carried_out
from kettle.prominence.expressions import all_of, between, call, choice, compare, my, one_of, said, target
from kettle.prominence.faults import DocumentRefused, Fault, require_none
from kettle.prominence.job_documents import artifact_of, encoded
from kettle.prominence.pull_credentials import STORED, handle, is_of_registry, without_secrets
from kettle.prominence.substitution import leads_outside, substituted, substituted_url
from kettle.prominence.values import text_of_value
from kettle.tasks.reading import RUNS_IMAGES, TasksError, image_form, read_tasks
from kettle_wire import tasks as wire
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus, Universe
from kettle_wire.leases import CURRENCY, PRICE
from kettle_wire.prominence.job import Artifact, InputFile, Job, Placement, Policies, Resources, Task

SITE: Final = "Site"
REGION: Final = "Region"
"""Attributes of a slot that placement is about; an administrator sets them."""
DOCUMENT: Final = "ProminenceDocument"
"""Attribute: the document of the job as JSON, without secrets and without the content of its input files."""
NAME: Final = "ProminenceName"
LABEL: Final = "ProminenceLabel_"
"""Beginning of the attribute that a label is."""
SCALING: Final = "ProminenceAutoScalingType"
NO_SCALING: Final = "none"
"""What a document says that says nothing: no machines are made for its job."""
LONGEST_IDLE: Final = "ProminenceMaximumIdleTime"
"""Seconds after which a machine that was made for the job is given up."""
LONGEST_WAIT: Final = "ProminenceMaximumTimeInQueue"
"""Seconds after which the job leaves the queue if it has not begun: no machine is made for it that would come too late."""
QUEUE_TIME_REASON: Final = "Maximum time queued was exceeded"
STDOUT: Final = "job.out"
STDERR: Final = "job.err"

_MIB_PER_GB: Final = 1000
_KIB_PER_GIB: Final = 1024 * 1024
_HARD_LIMIT: Final = 3
_KEPT: Final = 90 * 24 * 3600
"""Seconds for which a job that has ended stays in the queue if nobody removes it."""
MAIL_AT_THE_END: Final = 2
"""JobNotification of a job that is told of when it has ended."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to a job and is not in its document."""

    arch: str
    """What processor the images are for, as machine ads spell it."""
    upload: Callable[[str], str]
    """The URL from which an uploaded file is fetched, by its name; raises DocumentRefused for those of others."""
    output: Callable[[str], str] = lambda _: ""
    """The URL to which an output is sent, by its path; empty: to the submitter."""
    workflow: int = 0
    """The number of the workflow that it belongs to; 0: none."""
    parameters: Mapping[str, str] = {}
    """What they are in this instance of a factory."""
    environment: Mapping[str, str] = {}
    """What its tasks find in their environment besides."""


class JobSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is submitted; with `inputs`, these are sent to the access point after it."""

    ad: Ad
    inputs: list[InputFile]


def submission(job: Job, around: Surroundings) -> JobSubmission:
    """
    What is submitted for a job whose document is sound and has no older forms.

    Raises DocumentRefused: it asks for something that no machine does yet, or for another's file, or says what no starter takes.
    """
    require_none(not_carried_out(job))
    inputs = [replace(file, filename=posixpath.basename(file.filename)) for file in job.inputs]
    tasks = _task_list(job, around)
    said_of_tasks = _json(tasks)
    try:
        read_tasks(said_of_tasks)
    except TasksError as error:
        raise DocumentRefused([Fault("/tasks", str(error))]) from error
    ad: Ad = {
        **_universe(*node_range(job.resources)),
        **_logins(job.tasks),
        "Cmd": _shown_program(job.tasks[0]),
        "TransferExecutable": False,
        "ShouldTransferFiles": "YES",
        "WhenToTransferOutput": "ON_EXIT",
        "Out": STDOUT,
        "Err": STDERR,
        "StreamOut": True,
        "StreamErr": True,
        wire.ATTRIBUTE: said_of_tasks,
        DOCUMENT: _json(redacted(job)),
        "JobMachineAttrs": f"{PRICE},{CURRENCY}",
        **_requests(job.resources),
        **_policies(job.policies),
        **{f"{LABEL}{name}": value for name, value in job.labels.items()},
    }
    ad["AllowedExecuteDuration"] = _HARD_LIMIT * job.resources.walltime * 60
    ad["Requirements"] = said(all_of(list(_clauses(job, around, tasks.tasks))))
    if wishes := list(_wishes(job)):
        ad["Rank"] = said(_sum(wishes))
    if job.name:
        ad |= {NAME: job.name, "JobBatchName": job.name}
    if inputs:
        ad["TransferInput"] = ",".join(file.filename for file in inputs)
    if job.notifications:
        ad["JobNotification"] = MAIL_AT_THE_END
    return JobSubmission(ad=ad, inputs=inputs)


def _universe(least: int, most: int) -> Ad:
    if most == 1:
        return {"JobUniverse": int(Universe.VANILLA)}
    return {"JobUniverse": int(Universe.PARALLEL), "MinHosts": least, "MaxHosts": most}


def _logins(tasks: Iterable[Task]) -> Ad:
    """By which the starter is given what the registries of images want to see."""
    handles = dict.fromkeys(login for task in tasks if (login := handle(task)))
    return {SERVICES: ",".join(f"{SERVICE}{HANDLE}{login}" for login in handles)} if handles else {}


def _json(value: object) -> str:
    """
    JSON in which a schedd finds no `$$(...)` that it would put the machine's attributes in, or evaluate; it means the same.
    """
    return encoded(value).decode().replace("$$", "$\\u0024")


def redacted(job: Job) -> Job:
    """The job as it is shown: without passwords, tokens and the content of its input files."""
    storage = job.storage and replace(
        job.storage,
        b2drop=job.storage.b2drop and replace(job.storage.b2drop, app_password=STORED),
        onedata=job.storage.onedata and replace(job.storage.onedata, token=STORED),
        webdav=job.storage.webdav and replace(job.storage.webdav, password=STORED),
    )
    inputs = [replace(file, content=b"") for file in job.inputs]
    return replace(without_secrets(job), storage=storage, inputs=inputs)


# -- tasks -------------------------------------------------------------------------------------------------------------


def _task_list(job: Job, around: Surroundings) -> wire.TaskList:
    given = {
        **{f"PROMINENCE_PARAMETER_{name}": value for name, value in around.parameters.items()},
        **around.environment,
    }
    return wire.TaskList(
        tasks=tuple(_task(task, given, around) for task in job.tasks),
        artifacts=tuple(_artifact(artifact_of(one), around) for one in job.artifacts),
        outputs=(
            *(_output(path, around) for path in job.output_files),
            *(replace(_output(path, around), directory=True) for path in job.output_dirs),
        ),
        retries=job.policies.maximum_task_retries or 0,
        ignore_failures=job.policies.ignore_task_failures,
        success_on_failure=job.policies.report_job_success_on_task_failure,
        wall_time=job.resources.walltime * 60.0,
        workflow=around.workflow,
    )


def _task(task: Task, given: Mapping[str, str], around: Surroundings) -> wire.Task:
    return wire.Task(
        image=_image(task.image, around),
        cmd=tuple(substituted(word, around.parameters) for word in shlex.split(task.cmd or "")),
        env={name: text_of_value(value) for name, value in task.env.items()} | dict(given),
        workdir=task.workdir or "",
        type=task.type,
        ranks=task.procs_per_node or 0,
        stdout=task.stdout or "",
        sha256=(task.image_sha256 or "").lower(),
        app=task.app or "",
        login=token_name(login) if (login := handle(task)) else "",
    )


def _image(image: str, around: Surroundings) -> str:
    """Where the starter gets it."""
    if "://" in image or image.startswith("/"):
        return image
    return f"docker://{image}" if is_of_registry(image) else around.upload(image)


def _artifact(artifact: Artifact, around: Surroundings) -> wire.Artifact:
    url = substituted(artifact.url, around.parameters)
    is_url = "://" in url
    return wire.Artifact(
        url=substituted_url(artifact.url, around.parameters) if is_url else around.upload(url),
        name="" if is_url else posixpath.basename(url),
        executable=artifact.executable,
        mountpoint=artifact.mountpoint or "",
    )


def _output(path: str, around: Surroundings) -> wire.Output:
    """An output by its path; values of parameters in it are no patterns."""
    plain = substituted(path, around.parameters)
    if leads_outside(plain):
        raise DocumentRefused([Fault("", f"an output would not be below the job's directory: {plain}")])
    as_they_are = {name: glob.escape(value) for name, value in around.parameters.items()}
    return wire.Output(name=substituted(path, as_they_are), url=around.output(plain))


def _shown_program(task: Task) -> str:
    """What lists of jobs show: nothing runs it, and `$$(...)` in it means nothing."""
    words = shlex.split(task.cmd or "")
    return (words[0] if words else task.image).replace("$$", "$")


# -- what the job needs ------------------------------------------------------------------------------------------------


def _requests(resources: Resources) -> Ad:
    cpus = _cpus(resources)
    if resources.memory is not None:
        memory: Node = Literal(megabytes(resources.memory))
    else:
        each = megabytes(resources.memory_per_cpu or 0)
        given = resources.cpus
        memory = Literal(given * each) if given else compare(my("RequestCpus"), "*", Literal(each))
    ad: Ad = {
        "RequestCpus": said(cpus),
        "RequestMemory": said(memory),
        "RequestDisk": math.ceil(resources.disk / node_range(resources)[0]) * _KIB_PER_GIB,
    }
    if resources.gpus:
        ad["RequestGPUs"] = resources.gpus
        if choices := list(_gpu_choices(resources)):
            ad["RequireGPUs"] = said(all_of(choices))
    return ad


def _cpus(resources: Resources) -> Node:
    """As many of what the slot has as the job takes."""
    if resources.cpus_range:
        least, most = resources.cpus_range
        return between(target("Cpus"), least, most)
    if resources.cpus_options:
        other, preferred = resources.cpus_options
        return choice(_at_least("Cpus", preferred), Literal(preferred), Literal(other))
    return Literal(resources.cpus or 1)


def _at_least(name: str, amount: int) -> Node:
    return compare(target(name), ">=", Literal(amount))


def _gpu_choices(resources: Resources) -> Iterator[Node]:
    if resources.gpu_memory:
        yield compare(my("GlobalMemoryMb"), ">=", Literal(megabytes(resources.gpu_memory)))
    if resources.gpu_models:
        yield one_of(my("DeviceName"), resources.gpu_models)


def megabytes(gigabytes: float) -> int:
    """MiB that are asked for, rounded up."""
    return math.ceil(round(gigabytes * _MIB_PER_GB, 6))


def _clauses(job: Job, around: Surroundings, tasks: Iterable[wire.Task]) -> Iterator[Node]:
    """What a slot must have."""
    yield compare(target("Arch"), "==", Literal(around.arch))
    yield target("HasContainer")
    for form in sorted(set(map(image_form, tasks))):
        yield target(RUNS_IMAGES[form])
    for resource in ("Disk", "Memory", "Cpus", *(["GPUs"] if job.resources.gpus else [])):
        if resource == "GPUs" and (job.resources.gpu_memory or job.resources.gpu_models):
            counted = call("countMatches", my("RequireGPUs"), target("AvailableGPUs"))
            yield compare(counted, ">=", my("RequestGPUs"))
        else:
            yield compare(target(resource), ">=", my(f"Request{resource}"))
    yield target("HasFileTransfer")
    for name, places in _places(job.policies.placement, required=True):
        yield one_of(target(name), places)


def _places(placement: Placement, *, required: bool) -> Iterator[tuple[str, list[str]]]:
    sites = placement.requirements if required else placement.preferences
    yield from ((name, places) for name, places in ((SITE, sites.sites), (REGION, sites.regions)) if places)


def _wishes(job: Job) -> Iterator[Node]:
    """
    What makes a slot better: its place, the first of a list most; then CPUs, for a job that takes more or fewer.
    """
    most = max(job.resources.cpus_range or job.resources.cpus_options or [0])
    for name, places in _places(job.policies.placement, required=False):
        for number, place in enumerate(places):
            weight = (len(places) - number) * (most + 1)
            there = compare(one_of(target(name), [place]), "=?=", Literal(True))
            yield Parentheses(choice(there, Literal(weight), Literal(0)))
    if most:
        yield between(target("Cpus"), 0, most)


def _sum(nodes: list[Node]) -> Node:
    total, *others = nodes
    for node in others:
        total = compare(total, "+", node)
    return total


# -- how it is treated -------------------------------------------------------------------------------------------------


def _policies(policies: Policies) -> Ad:
    ad: Ad = {}
    if policies.priority:
        ad["JobPrio"] = policies.priority
    if policies.maximum_retries:
        ended = compare(my("NumJobCompletions"), ">", my("JobMaxRetries"))
        succeeded = compare(my("ExitCode"), "=?=", Literal(0))
        ad |= {
            "JobMaxRetries": policies.maximum_retries,
            "OnExitRemove": said(Logical("||", ended, succeeded)),
            "OnExitHold": False,
        }
    if policies.maximum_time_in_queue and policies.maximum_time_in_queue > 0:
        waited = compare(
            compare(call("time"), "-", my("QDate")), ">", Literal(policies.maximum_time_in_queue * 60)
        )
        never_ran = compare(my("NumJobStarts"), "=?=", Literal(0))
        idle = compare(my("JobStatus"), "==", Literal(int(JobStatus.IDLE)))
        ad |= {
            "PeriodicRemove": said(all_of([idle, never_ran, waited])),
            "PeriodicRemoveReason": QUEUE_TIME_REASON,
            LONGEST_WAIT: policies.maximum_time_in_queue * 60,
        }
    if policies.leave_in_queue:
        ad["LeaveJobInQueue"] = said(_kept())
    ad[SCALING] = policies.auto_scaling_type or NO_SCALING
    if policies.maximum_idle_time_per_resource:
        ad[LONGEST_IDLE] = policies.maximum_idle_time_per_resource * 60
    return ad


def _kept() -> Node:
    since = Parentheses(compare(call("time"), "-", my("EnteredCurrentStatus")))
    return compare(since, "<", Literal(_KEPT))
