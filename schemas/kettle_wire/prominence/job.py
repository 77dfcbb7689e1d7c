"""The document of one job: tasks that run one after the other, each in its container."""

from typing import Annotated, Any, Literal

import msgspec

from kettle_wire.prominence.values import (
    AbsolutePath,
    Count,
    Document,
    Gigabytes,
    LabelName,
    LabelValue,
    Location,
    Name,
    OutputPath,
    Value,
    VariableName,
)

TwoCounts = Annotated[list[Count], msgspec.Meta(min_length=2, max_length=2)]
Minutes = Annotated[int, msgspec.Meta(ge=1, le=44640)]
Mountpoint = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?!\.\.?:)[^/:]+:/[^:]*$",
        description="DIRECTORY:/PATH, a directory of the archive and where it is in the containers",
    ),
]
Retries = Annotated[int, msgspec.Meta(ge=1, le=6)]


class Resources(Document, frozen=True):
    """What the job needs on each of its nodes."""

    nodes: Count = 1
    cpus: Count | None = None
    """Exactly one of `cpus`, `cpusRange`, `cpusOptions` is given."""
    cpus_range: TwoCounts | None = None
    """The least and the most; more are preferred."""
    cpus_options: TwoCounts | None = None
    """One of two numbers; the second is preferred."""
    total_cpus_range: TwoCounts | None = None
    """The least and the most on all nodes together; it excludes `nodes`."""
    memory: Gigabytes | None = None
    """GB; exactly one of `memory` and `memoryPerCpu` is given."""
    memory_per_cpu: Gigabytes | None = None
    """GB for each CPU that the job gets."""
    disk: Count = 10
    """GB, for all nodes together."""
    walltime: Count = 720
    """Minutes for all tasks; the pull of images does not count."""
    gpus: Count | None = None
    gpu_memory: Gigabytes | None = None
    """GB that each GPU has at least."""
    gpu_models: list[str] = []
    """Names of devices, one of which it must be; empty: any."""


class Credential(Document, frozen=True):
    """What a private registry asks for."""

    username: Annotated[
        str, msgspec.Meta(pattern=r"^[^:\x00-\x1f]+$", max_length=256, description="a name without a colon")
    ]
    token: Annotated[str, msgspec.Meta(min_length=1, max_length=8192)]
    """`***`: the one that was sent before for this user of this registry."""


class Task(Document, frozen=True):
    """One command in one container."""

    image: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^(docker://|https?://|(?!.*://)(?!(.*/)?\.\.(/.*)?$)).+$",
            max_length=4096,
            description="a name in a registry, a URL of http or https, an uploaded file, or an absolute path",
        ),
    ]
    """The name of an uploaded file ends with .sif, .simg, .tar, .tgz or .tar.gz."""
    runtime: Literal["singularity", "udocker"]
    cmd: str | None = None
    """Its words are those of a shell, but no shell runs it; without it, the entry point of the image."""
    app: (
        Annotated[
            str,
            msgspec.Meta(
                pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
                max_length=256,
                description="made of letters, digits, _ . and -",
            ),
        ]
        | None
    ) = None
    """The application of a SCIF image."""
    env: dict[VariableName, Value] = {}
    workdir: (
        Annotated[
            str,
            msgspec.Meta(
                pattern=r"^(?!(.*/)?\.\.(/.*)?$).+$",
                max_length=4096,
                description="a path that does not lead upwards",
            ),
        ]
        | None
    ) = None
    """An absolute directory in the container, or one that begins at the job's."""
    type: Literal["basic", "sidecar", "openmpi", "mpich", "intelmpi"] = "basic"
    procs_per_node: Count | None = None
    """MPI processes on each node; by default as many as CPUs."""
    image_pull_credential: Credential | None = None
    image_sha256: (
        Annotated[str, msgspec.Meta(pattern=r"^[0-9a-fA-F]{64}$", description="64 hexadecimal digits")] | None
    ) = None
    stdout: OutputPath | None = None
    """A file of the job that the task's standard output goes to as well."""


class Sites(Document, frozen=True):
    """Where a job may run, or runs best."""

    sites: list[str] = []
    regions: list[str] = []


class Placement(Document, frozen=True):
    """Requirements must hold; preferences order what is left, the first of a list before the second."""

    requirements: Sites = Sites()
    preferences: Sites = Sites()


class Policies(Document, frozen=True):
    """How the job is treated while it waits, runs and ends."""

    maximum_retries: Retries | None = None
    """How often the whole job runs again if it fails."""
    maximum_task_retries: Retries | None = None
    """How often a task runs again in its place."""
    maximum_time_in_queue: Annotated[int, msgspec.Meta(ge=-1, le=44640)] | None = None
    """Minutes; -1: without limit."""
    maximum_idle_time_per_resource: Minutes | None = None
    """Minutes after which another resource is tried."""
    priority: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    """Among one's own jobs."""
    preemptible: bool = False
    leave_in_queue: bool = False
    """The job stays visible until it is removed."""
    placement: Placement = Placement()
    auto_scaling_type: Literal["none", "dedicated", "shared"] | None = None
    """Which machines may be made for it; by default none are."""
    ignore_task_failures: bool = False
    """The next task runs although one has failed."""
    ignore_task_tailures: bool = False
    """How the Python class of the client spells `ignoreTaskFailures`."""
    report_job_success_on_task_failure: bool = False
    run_serial_tasks_on_all_nodes: bool = False


class InputFile(Document, frozen=True):
    """A small file that comes with the document."""

    filename: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^(.*/)?(?!\.\.?$)[^/,$ ]([^/,$]*[^/,$ ])?$",
            max_length=4096,
            description="the name of a file, without commas and dollars",
        ),
    ]
    """Only its last part is kept."""
    content: Annotated[bytes, msgspec.Meta(max_length=1_000_000)]
    executable: bool = False


class Artifact(Document, frozen=True):
    """A file or an archive that is fetched before the first task."""

    url: Location
    mountpoint: Mountpoint | None = None
    executable: bool = False


class B2Drop(Document, frozen=True):
    """An account at B2DROP."""

    app_username: str = msgspec.field(name="app-username")
    app_password: str = msgspec.field(name="app-password")


class OneData(Document, frozen=True):
    """Access to a Onedata provider."""

    provider: str
    token: str
    options: str | None = None


class WebDav(Document, frozen=True):
    """An account at a WebDAV server."""

    url: str
    username: str
    password: str


class Storage(Document, frozen=True):
    """A file system of the user's that is mounted for the job."""

    type: Literal["b2drop", "onedata", "webdav"]
    mountpoint: AbsolutePath
    default: bool = False
    """Images, artifacts and outputs are in this storage."""
    directory: str | None = None
    b2drop: B2Drop | None = None
    onedata: OneData | None = None
    webdav: WebDav | None = None


class JobNotification(Document, frozen=True):
    """Mail when the job has ended."""

    event: Literal["jobFinished"]
    type: Literal["email"]


class Job(Document, frozen=True):
    """A job, as it is submitted."""

    resources: Resources
    tasks: Annotated[list[Task], msgspec.Meta(min_length=1, max_length=100)]
    name: Name = ""
    labels: dict[LabelName, LabelValue] = {}
    inputs: list[InputFile] = []
    artifacts: Annotated[list[Artifact | Location], msgspec.Meta(max_length=100)] = []
    """A text is the `url` of an artifact: the older form."""
    output_files: Annotated[list[OutputPath], msgspec.Meta(max_length=100)] = []
    """Patterns, each of exactly one file in the job's directory."""
    output_dirs: Annotated[list[OutputPath], msgspec.Meta(max_length=100)] = []
    storage: Storage | None = None
    policies: Policies = Policies()
    notifications: list[JobNotification] = []
    constraints: dict[str, Any] = {}
    """The older form of `policies.placement`: it is shown, and has no effect."""
    preemptible: bool = False
    """The older place of `policies.preemptible`."""
    number_of_retries: Annotated[int, msgspec.Meta(ge=0, le=6)] = 0
    """The older form of `policies.maximumRetries`."""
