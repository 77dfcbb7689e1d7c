"""What a startd sends to a starter, what a starter leaves behind for it, and the names that both use."""

from typing import Annotated, Final

import msgspec

from kettle.execution.containers.policy import ContainerPolicy
from kettle.execution.system.cgroup_layout import CgroupLayout
from kettle.transfer.data_rules import DataRule
from kettle.transfer.plugin import Plugin
from kettle_wire.ads import Ad
from kettle_wire.attempts import Transfer
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId
from kettle_wire.subjects import token as safe
from kettle_wire.worker_reports import Report, ReportKey

_NAME_BYTES: Final = 120
"""Longest claim id that is used as part of a file name; longer ones are hashed."""


class AttemptId(msgspec.Struct, frozen=True, array_like=True):
    """
    One attempt on this machine.

    The job belongs to it: attempts are counted per job, and a claim that is used again may see the same number again.
    """

    claim: str
    job: JobId
    attempt: int

    @property
    def name(self) -> str:
        """The attempt as part of a file name."""
        claim = safe(self.claim)
        if len(claim) > _NAME_BYTES:
            import hashlib  # rarely needed, and each page costs memory

            claim = hashlib.sha256(claim.encode()).hexdigest()[:32]
        return f"{claim}_{self.job.cluster}.{self.job.proc}_{self.attempt}"

    @property
    def sandbox(self) -> str:
        """Name of the attempt's directory inside the execute directory."""
        return f"dir_{self.name}"


class Account(msgspec.Struct, frozen=True):
    """Whom a job runs as, if not as the startd's own user."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    """The groups that it is in besides; the account of a slot is in none."""
    home: str = ""
    """Its home directory; empty: it exists only for its slot, and all that belongs to it is the job's."""


class Input(msgspec.Struct, frozen=True):
    """A file for the sandbox: bytes, or the path of a copy in the cache."""

    name: str
    mode: int
    data: bytes | None = None
    path: str = ""
    sha256: str = ""
    """The hash of its bytes; empty: it was not computed."""
    saved: bool = False
    """An earlier run of the job left it."""
    directory: bool = False
    """It is a directory with nothing in it."""


class ChirpPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the programs of a job may ask of their submit side."""

    files: bool = False
    """The files of the job's owner."""
    updates: bool = False
    """The job's ad and its log."""
    delayed: tuple[str, ...] = ()
    """Patterns of the names of attributes that are set without hurry."""
    commands: bool = False
    """The queue: to submit jobs, and act on those of the owner."""
    sessions: bool = False
    """The interactive session that the job is a member of."""
    nodes: bool = False
    """The other nodes of the job, to run programs there."""
    services: bool = False
    """To have ports of the job published; also what its description says of them."""


class JobHooks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Programs of the machine's owner that are run around a job, each as a list of words; an empty one is not run.
    """

    prepare_job_before_transfer: list[str] = []
    """Before its URLs are fetched: prints what is to be different in the job's ad; fails: the job is held."""
    prepare_job: list[str] = []
    """The hook that runs when the input files are there."""
    update_job_info: list[str] = []
    """With each measurement of the job."""
    job_exit: list[str] = []
    """
    When the job has ended, before its results are sent; its word is `exit`, `hold`, `remove` or `evict`.
    """
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    """
    Seconds that one may take before it is killed; of those that prepare a job, the job then runs elsewhere.
    """


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """What a job without a container does not share with the rest of the machine."""

    no_new_privileges: bool = False
    """No program that it executes gets rights that it has not: set-user-id programs run as the job's account."""
    directories: tuple[str, ...] = ()
    """Directories of the machine in whose place it has one of its own, in its sandbox."""
    shared_memory: bool = False
    """It has `/dev/shm`, objects of System V and message queues of its own."""


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a starter needs to know; it asks no other service."""

    key: ClaimKey
    job: JobId
    attempt: int
    schedd: str
    shadow: str = ""
    """The shadow of the attempt on the submit side."""
    execute: str
    """Directory in which sandboxes are."""
    state: str
    """Directory of the startd's socket and, in `reports`, of final reports; no job gets in."""
    slot: str
    cpus: int
    memory: int
    """MiB."""
    disk: int
    """KiB."""
    devices: dict[str, list[str]] = {}
    """Ids of custom resources by tag; an empty list: the machine has such, and the job gets none of them."""
    ad: Ad
    machine_ad: str
    """In old syntax, as it goes into `.machine.ad`."""
    inputs: list[Input]
    received: int
    """Bytes that came from the submit side."""
    fetched: Transfer | None = None
    """When those came that did not come with the order to start; None: there are none."""
    began: float
    """When the attempt was activated, on `boottime`."""
    deadline: float
    """End of the lease, on `boottime`."""
    sequence: int
    """Number of the last report of this claim: the numbers of a claim's reports never repeat."""
    account: Account | None = None
    cgroups: CgroupLayout | None = None
    home: str = ""
    """Home directory of a job that runs as the startd's own user."""
    kill_timeout: float = 30.0
    """Seconds between the soft kill signal and SIGKILL; a job may ask for fewer."""
    monitor_interval: float = 5.0
    measure_interval: float = 300.0
    checkpoint_pause: float = 10.0
    """The least seconds between two starts of a program that ends with a checkpoint."""
    enforce_disk: bool = False
    isolation: Isolation = Isolation()
    containers: ContainerPolicy | None = None
    """None: there are no containers on this machine."""
    plugins: list[Plugin] = []
    """What moves files by URL here."""
    plugin_lifetime: float = 72_000.0
    """Seconds that one plugin may take for all its files."""
    url_cache_mib: int = 0
    """The most that is kept of what was fetched by URL; 0: nothing."""
    url_cache: str = ""
    """Directory in which it is kept; empty: one of this machine."""
    data_rules: list[DataRule] = []
    """How the site wants files to be fetched."""
    trace: str = ""
    chirp: ChirpPolicy = ChirpPolicy()
    hooks: JobHooks | None = None
    """None: nothing is run around this job."""
    environment: dict[str, str] = {}
    """Variables that the machine's owner gives to every job."""

    @property
    def id(self) -> AttemptId:
        """The attempt."""
        return AttemptId(self.key.claim, self.job, self.attempt)


class StoredReport(msgspec.Struct, frozen=True, kw_only=True):
    """A final report as it waits on disk for its confirmation."""

    schedd: str
    secret: str
    report: Report
    sandbox: bool = False
    """The sandbox is kept, because it holds outputs that are still to be fetched."""
    keeps: bool = False
    """These stay on the machine for the jobs that come next, when they have been fetched."""

    @property
    def id(self) -> AttemptId:
        """The attempt that it is about."""
        return AttemptId(self.report.claim, self.report.job, self.report.attempt)

    @property
    def key(self) -> ReportKey:
        """How it is confirmed."""
        return self.report.key
