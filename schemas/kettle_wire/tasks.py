"""
Several tasks in one job: what its ad carries in `KettleTasks`, and what `KettleSteps` says of how they went.

Both are JSON in a string. A starter carries no evaluator of expressions, names of environment variables differ by case and
those of attributes do not, and a string is read in any language.
"""

from typing import Annotated, Final, Literal

import msgspec

from kettle_wire.attempts import Code

ATTRIBUTE: Final = "KettleTasks"
"""The attribute of the job's ad in which its tasks are: the JSON of `TaskList`."""
STEPS_ATTRIBUTE: Final = "KettleSteps"
"""The attribute in which the steps of the newest attempt are: the JSON of a list of `Step`."""
HOME: Final = "/home/user"
"""Where the sandbox is in the container of a task; it is the task's HOME."""
MOST_STEPS: Final = 1000
"""Of one attempt, with all retries: they are in the job's ad, so a job that could have more is refused."""

Text = Annotated[str, msgspec.Meta(max_length=32_768, pattern=r"^[^\x00]*$")]
Line = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00\n]*$")]
Variable = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern=r"^[^=\x00]+$")]
Digest = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?$")]
Retries = Annotated[int, msgspec.Meta(ge=0, le=100)]
Application = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$")]

TaskKind = Literal["basic", "sidecar", "openmpi", "mpich", "intelmpi"]
"""The last three are MPI programs, each started by the launcher of that implementation on all nodes of the job."""
MPI: Final = frozenset({"openmpi", "mpich", "intelmpi"})


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One program of the job, which runs in a container of its own if it names an image."""

    image: Line = ""
    """
    As in `container_image`: `docker://NAME`, a SIF file, an archive or a directory, by its path on the machine, its name in the
    sandbox, or a URL (http, https) from which it is fetched; empty: the task runs as jobs without a container do.
    """
    cmd: tuple[Text, ...] = ()
    """Program and arguments; no shell sees them. Empty: the entry point of the image."""
    env: dict[Variable, Text] = {}
    """What it has beside the job's environment, or in its place."""
    workdir: Line = ""
    """Where it begins: relative to the sandbox, or an absolute path of its container."""
    type: TaskKind = "basic"
    """A sidecar runs beside those that come after it; it is ended with the last of them, and its failure counts for nothing."""
    ranks: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """Of an MPI program, how many processes it has on each node; 0: as many as the job has CPUs there."""
    retries: Retries | None = None
    """How often it is tried again in its place after a failure; None: as often as the job says of all."""
    stdout: Line = ""
    """A file of the sandbox in which its output is, too."""
    sha256: Digest = ""
    """Of the image's file; empty: it is not compared."""
    app: Application = ""
    """The application of a SCIF image in which it runs; without `cmd`, what that application itself runs."""
    login: Line = ""
    """The token of the job with which its image is got from a registry, by its name; empty: that of the machine, if it has one."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file that is fetched before the tasks run; archives are unpacked, by the suffix of their name."""

    url: Line
    """http or https, or what else the machine's plugins fetch."""
    name: Line = ""
    """The file's name in the sandbox; empty: the last part of the URL."""
    executable: bool = False
    """It may be executed."""
    mountpoint: Line = ""
    """`NAME:/path`: the file or directory NAME of the sandbox is at that absolute path in containers, too."""


class Output(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A result, which is sent when the tasks are over, also when one has failed."""

    name: Line
    """A path in the sandbox, or a pattern that fits exactly one."""
    directory: bool = False
    """A directory, sent as `<last part of its name>.tgz`."""
    url: Line = ""
    """Where it goes, by PUT; empty: to the submitter, as other results do."""


class TaskList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The tasks of a job, one after another in one sandbox, and what belongs to all of them."""

    tasks: Annotated[tuple[Task, ...], msgspec.Meta(min_length=1, max_length=100)]
    artifacts: Annotated[tuple[Artifact, ...], msgspec.Meta(max_length=100)] = ()
    outputs: Annotated[tuple[Output, ...], msgspec.Meta(max_length=100)] = ()
    retries: Retries = 0
    """How often a task is tried again that does not say it itself."""
    ignore_failures: bool = False
    """A task that has failed does not keep the next from running."""
    success_on_failure: bool = False
    """The job ends with 0 although a task has failed."""
    wall_time: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """Seconds that all of it may take, without what it takes to get images; 0: no limit."""
    workflow: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The number of the workflow that the job belongs to; 0: none."""


StepKind = Literal["fetch", "pull", "task", "sidecar", "send"]
Outcome = Literal["begun", "done", "cached", "failed", "ended"]
"""`begun`: its end is a step of its own; `cached`: the image was there; `ended`: somebody or a limit ended it."""


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What happened in one attempt of a job of several tasks; times in seconds since the epoch, on the worker's clock.
    """

    kind: StepKind
    outcome: Outcome
    task: int | None = None
    """The task's place in the list, from 0; None: it belongs to all."""
    retry: int = 0
    """How often the task had been tried before."""
    name: str = ""
    """Of the image, the artifact or the result; URLs are without secrets."""
    began: float = 0.0
    ended: float = 0.0
    bytes: int = 0
    """Of the file; 0: not known."""
    code: Code | None = None
    """The exit code."""
    signal: int | None = None
    """The number of the signal that ended it."""
    user_cpu: float = 0.0
    """Seconds, of the task's process and those that it has waited for."""
    system_cpu: float = 0.0
    memory_kib: int = 0
    """The most that one of these had in memory, KiB."""
    reason: str = ""
    """Why it has failed or was ended: a sentence for people."""
