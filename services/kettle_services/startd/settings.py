"""What can be set about a startd; times are seconds, and the defaults are HTCondor's."""

from pathlib import Path
from typing import Annotated, Final, Literal, get_args

import msgspec

from kettle.execution.attempts.job_spec import JobHooks
from kettle.execution.site_probes.declared import AnyProbe
from kettle.runtime import Settings
from kettle.runtime.expression_types import Condition, NumberExpression, NumberText, TextExpression
from kettle.runtime.setting_types import KiB, MiB, Pause, Seconds
from kettle.transfer.data_rules import read_rules
from kettle_services.startd.domain.slots.layout import SlotType
from kettle_services.startd.domain.state import policy_expressions as policy
from kettle_wire.ads import Scalar
from kettle_wire.leases import LIVES_ENOUGH

Count = Annotated[int, msgspec.Meta(ge=0)]
AbsolutePath = Annotated[str, msgspec.Meta(pattern=r"^(/[^/\0]+)+$")]
DataRuleText = Annotated[str, msgspec.Meta(max_length=2000)]
TransferMethod = Literal[
    "dav", "davs", "file", "gs", "http", "https", "root", "roots", "s3", "xroot", "xroots"
]


class StartdSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_STARTD_<FIELD>` or the table `[startd]`."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[^/]*$")] = ""
    """The machine's name in the pool, without `/`; empty: its host name."""
    num_cpus: Count = 0
    """Cores to give away; 0: all that this process may use."""
    memory: MiB = 0
    """MiB to give away; 0: all that the machine has."""
    disk: KiB = 0
    """KiB to give away; 0: what is free below `execute`."""
    start: Condition = "true"
    """START: whether the slot (MY) takes the job (TARGET)."""
    rank: NumberExpression = "0.0"
    """RANK: how much the slot prefers the job."""
    is_owner: Condition = "false"
    """IS_OWNER: whether the machine's owner has the slot to themselves; then it takes no jobs."""
    want_suspend: Condition = "false"
    """WANT_SUSPEND: whether SUSPEND is evaluated for the job, and PREEMPT only when it is suspended."""
    suspend: Condition = "false"
    """SUSPEND: whether the job is suspended."""
    continue_: Condition = msgspec.field(default="true", name="continue")
    """CONTINUE: whether a suspended job continues."""
    preempt: Condition = "false"
    """PREEMPT: whether the job is to leave the slot, after its retirement time."""
    want_vacate: Condition = "true"
    """WANT_VACATE: whether a job that has to leave is asked to end, and not killed at once."""
    kill: Condition = "false"
    """KILL: whether a job that was asked to end is killed before its time is over."""
    want_hold: Condition = "false"
    """WANT_HOLD: whether a job that PREEMPT ends is held, and does not run again elsewhere."""
    want_hold_reason: TextExpression = "undefined"
    """WANT_HOLD_REASON: why, a string."""
    want_hold_subcode: NumberExpression = "0"
    """WANT_HOLD_SUBCODE: HoldReasonSubCode, an integer."""
    max_job_retirement_time: NumberExpression = "0"
    """MaxJobRetirementTime: seconds that a job may run undisturbed; one may ask for fewer."""
    machine_max_vacate_time: NumberExpression = "600"
    """MachineMaxVacateTime: seconds from the soft kill signal to SIGKILL; a job may ask for fewer."""
    claim_worklife: NumberExpression = "1200"
    """CLAIM_WORKLIFE: seconds after which a claim takes no further job; -1: never, 0: one job per claim."""
    backfill_command: list[str] = []
    """
    Program with arguments that slots run while they do nothing for the pool (BACKFILL_SYSTEM); none: they do nothing.
    """
    start_backfill: Condition = "false"
    """START_BACKFILL: whether the slot begins to run it."""
    evict_backfill: Condition = "false"
    """EVICT_BACKFILL: whether what runs is ended; a claim, the owner and a drain end it too."""
    user_preemption: bool = False
    """
    Jobs are preempted by those of submitters with a better priority, where the negotiator's `preemption_requirements`
    permit it; RANK must not prefer the running job.
    """
    polling_interval: Seconds = 5.0
    """Seconds between two evaluations of the expressions above (POLLING_INTERVAL)."""
    console_devices: tuple[str, ...] = ("tty[0-9]*", "console", "input/*")
    """Devices below `/dev`, as patterns, whose use counts as use of the console (CONSOLE_DEVICES)."""
    administrators: tuple[str, ...] = ()
    """Who may drain this machine, beside the account that the startd runs as."""
    can_hibernate: bool = False
    """
    The scaler may have this machine put to sleep while it has no job, and woken when one waits (HIBERNATE); its pool says when.
    """
    slot_types: list[SlotType] = []
    """How the machine is divided into slots (SLOT_TYPE_N); none: one partitionable slot with everything."""
    slot_weight: NumberText = "Cpus"
    """SLOT_WEIGHT: what a slot counts for, an expression over its ad; fair shares and usage count it."""
    modify_request_expr: dict[str, NumberText] = {}
    """
    Size of dynamic slots by resource, expressions of the job (MODIFY_REQUEST_EXPR_...); else up to 1 core, 128 MiB, 1 MiB.
    """
    must_modify_request_exprs: bool = False
    """Refuse a job whose request fits only as it is, without these expressions."""
    machine_resources: dict[str, Count | list[str]] = {}
    """What else the machine has (MACHINE_RESOURCE_...): by tag a number, or the ids of the pieces."""
    machine_resource_properties: dict[str, dict[str, dict[str, Scalar]]] = {}
    """What is known about pieces, by tag and id; jobs choose by it (`require_<tag>`)."""
    offline_machine_resources: dict[str, list[str]] = {}
    """Ids by tag that are not given to jobs (OFFLINE_MACHINE_RESOURCE_...)."""
    discover_gpus: bool = True
    """Look for GPUs at the start, unless `machine_resources` or the `discovery` names them."""
    discovery: list[str] = []
    """Program with arguments that prints what else the machine has, as condor_gpu_discovery does."""
    attributes: dict[str, Scalar] = {}
    """More attributes of every slot (STARTD_ATTRS)."""
    probes: list[AnyProbe] = []
    """
    What the machine looks at again and again (STARTD_CRON): CVMFS repositories, caches, images, programs of its owner.
    """
    local_jobs: bool = True
    """
    Run the jobs of the local and the scheduler universe that are submitted to schedds with the same `home`.
    """
    local_overcommit: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 1.0
    """
    How many times the machine's cores and memory these jobs may have all together, beside those of the pool.
    """
    execute: str = ""
    """
    Directory of the sandboxes; empty: `execute` in the pool's home, or one that slot accounts can reach.
    """
    job_account: Literal["auto", "slot", "own"] = "auto"
    """
    The account of jobs: one per slot, which needs root, or the startd's own; auto: slot if the startd is root.
    Jobs of the local and scheduler universe run as their owners on a startd that is root.
    """
    slot_uid_base: Annotated[int, msgspec.Meta(gt=0, lt=2**32 - 100_000)] = 1_900_000_000
    """
    The account of dynamic slot N has this number plus N, as user and as group; no distribution gives these out.
    """
    update_interval: Seconds = 300.0
    """Between repeats of an ad that has not changed."""
    activity_delay: Seconds = 1.0
    """How long the beginning or end of a job may wait to be seen in its slot's ad; resources never wait."""
    shutdown_kill_timeout: Pause = 3.0
    """The most that `machine_max_vacate_time` is when the startd is being stopped."""
    max_lease: Seconds = 604800.0
    """The longest time that a job may run without contact to its schedd, no matter what lease it asks for."""
    monitor_interval: Seconds = 5.0
    """Between two measurements of a job by its starter."""
    measure_interval: Seconds = 300.0
    """Between two reports of what was measured (STARTER_UPDATE_INTERVAL)."""
    checkpoint_pause: Seconds = 10.0
    """The least time between two starts of a program that ends with a checkpoint; doubled, up to 30 times as much, as
    long as it uses no CPU: one that does nothing else must not keep the access point busy."""
    enforce_disk: bool = False
    """Hold a job that uses more disk than its slot has (STARTD_ENFORCE_DISK_LIMITS)."""
    no_new_privileges: bool = True
    """
    No program that a job executes gets rights that the job has not, as set-user-id programs (sudo, ping) would.
    """
    mount_under_scratch: tuple[AbsolutePath, ...] = ("/tmp", "/var/tmp")  # noqa: S108 - each job has its own
    """
    Directories of the machine that each job without a container has for itself, in its sandbox; takes root
    (MOUNT_UNDER_SCRATCH).
    """
    mount_private_dev_shm: bool = True
    """
    Each job without a container has shared memory for itself: /dev/shm and System V; takes root (MOUNT_PRIVATE_DEV_SHM).
    """
    cgroups: bool = True
    """Use control groups where the machine lets us."""
    container_runtimes: tuple[Literal["bubblewrap", "runc", "crun", "podman", "docker"], ...] = (
        "bubblewrap", "runc", "crun", "podman", "docker",
    )  # fmt: skip
    """
    What may run containers, the most preferred first; each is tried at the start, and what fails is not used.
    """
    container_bind: list[str] = []
    """
    What every container sees of this machine: `SOURCE` or `SOURCE:DESTINATION`; read-only unless `:rw` follows.
    """
    container_network: Literal["host", "none"] = "host"
    """The network of containers; `none` wins over what a job asks for."""
    container_devices: list[str] = []
    """Device files that containers of jobs with GPUs see, but for the nodes of GPUs that are not theirs."""
    container_engine_options: dict[str, list[str]] = {}
    """
    Options of the commands `podman` and `docker`, by their names: where the daemon or the store of images is.
    """
    container_auth_file: str = ""
    """
    File with logins for registries, as `docker login` and `podman login` write it; empty: what they find themselves.
    """
    container_always: bool = False
    """
    Jobs that bring no image run in a container too: they see the machine's files read-only, and a /tmp of their own.
    """
    singularity_image_expr: TextExpression = "undefined"
    """
    SINGULARITY_IMAGE_EXPR: the image of a job (TARGET) that has no `container_image`, a string: `TARGET.SingularityImage` for those that
    were written for sites with Singularity or Apptainer.
    """
    container_images: str = ""
    """Directory of unpacked images; empty: `images` beside the sandboxes."""
    container_images_mib: MiB = 20480
    """How much of it is kept when no job uses it, and the most that one image may have."""
    container_pull_timeout: Seconds = 1200.0
    """The longest that docker or podman may take to get an image; the job runs elsewhere then."""
    transfer_plugins: list[str] = []
    """Programs that move files by URL (FILETRANSFER_PLUGINS); they go before Kettle's own."""
    transfer_methods: tuple[TransferMethod, ...] = get_args(TransferMethod)
    """
    URL schemes that Kettle's own plugins move; those of XRootD only where its programs (xrdcp, xrdfs) work.
    """
    transfer_plugin_lifetime: Seconds = 72_000.0
    """
    How long a plugin may take for all files of a job before it is killed (MAX_FILE_TRANSFER_PLUGIN_LIFETIME).
    """
    job_environment: dict[str, str] = {}
    """
    Variables that every job has unless its owner sets them, such as XRD_PLUGINCONFDIR (STARTER_JOB_ENVIRONMENT); to a PATH the
    directory of the helper programs is added.
    """
    job_hooks: dict[str, JobHooks] = {}
    """Programs that are run around jobs, by keyword: as HTCondor's `<KEYWORD>_HOOK_PREPARE_JOB` and so on."""
    job_hook_keyword: str = ""
    """The keyword of all jobs (STARTER_JOB_HOOK_KEYWORD); empty: each job chooses its own (HookKeyword)."""
    default_job_hook_keyword: str = ""
    """
    The keyword of jobs that choose none, or one that does not exist here (STARTER_DEFAULT_JOB_HOOK_KEYWORD).
    """
    enable_chirp: bool = True
    """Whether programs of jobs may ask their submit side anything (ENABLE_CHIRP)."""
    enable_chirp_io: bool = True
    """Chirp requests of jobs with `want_io_proxy` for files of the submitter (ENABLE_CHIRP_IO)."""
    enable_chirp_updates: bool = True
    """
    Chirp requests of jobs with `want_io_proxy` for attributes of the job's ad, and lines in its log
    (ENABLE_CHIRP_UPDATES).
    """
    enable_chirp_delayed: bool = True
    """Chirp requests of all jobs for delayed updates of attributes (ENABLE_CHIRP_DELAYED)."""
    enable_pool_access: bool = True
    """Requests of jobs with `want_pool_access` to submit jobs and to act on those of their owner."""
    enable_published_services: bool = True
    """Whether ports of jobs are published at the pool's gateway (`services` in their descriptions, or `kettle publish` in them)."""
    chirp_delayed_update_prefix: tuple[str, ...] = ("Chirp*",)
    """What those attributes are called (CHIRP_DELAYED_UPDATE_PREFIX)."""
    lease_ends: Pause = 0.0
    """
    Seconds after the boot of this machine at which it goes, since it was made for a lease; 0: it stays. Its slots say how long that
    is (`TimeToLive`), and take no job that may run for longer (`allowed_execute_duration`, `allowed_job_duration`).
    """
    quarantine_after: Count = 0
    """
    So many different jobs in a row that fail within `quarantine_within` make the machine take no more; four times as many if
    all are of one cluster. 0: it takes jobs however many fail.
    """
    quarantine_within: Seconds = 10.0
    """Seconds."""
    report_repeat: Seconds = 5.0
    """To the first repeat of a final report that nobody confirmed; later ones wait longer."""
    input_cache_mib: MiB = 1024
    """Size of the cache of input files."""
    kept_outputs_mib: MiB = 256
    """
    How much of that cache may be results of jobs that want them kept for the next ones (`KeepOutputsOnMachine`); 0: none are.
    """
    kept_outputs_lifetime: Seconds = 600.0
    """So long these are kept."""
    url_cache_mib: MiB = 1024
    """
    Size of the cache of what jobs fetch by http, https and s3, if the server can say that it is the same; 0: no cache.
    """
    url_cache: str = ""
    """
    Directory of that cache: one that several machines of a site mount serves all of them; empty: one of this machine.
    """
    data: list[DataRuleText] = []
    """
    Through which caches of the site files are fetched: `PATTERN: cache=URL, form=path|url|proxy, fallback=origin|none`.
    """
    input_patience: Seconds = 60.0
    """How long a shadow may not know an input file that it announced: it may just have been restarted."""
    adoption_patience: Seconds = 3.0
    """How long a starter whose process is not known may take to find a startd that was restarted."""

    def __post_init__(self) -> None:
        """Raises ValueError if a rule for data makes no sense."""
        read_rules(self.data)
        if self.url_cache and not self.url_cache.startswith("/"):
            raise ValueError(f"url_cache is the absolute path of a directory, and {self.url_cache!r} is none")

    @property
    def policy(self) -> dict[str, str]:
        """The texts of the policy's expressions, by HTCondor's names."""
        texts = {
            name: _text(getattr(self, _POLICY_FIELDS.get(name, name.lower()))) for name in policy.DEFAULTS
        }
        return texts | {"START": f"({texts['START']}) && {LIVES_ENOUGH}"} if self.lease_ends else texts

    @property
    def state_path(self) -> Path:
        """Where the journal, the reports, the input cache and the starters' socket are."""
        return self.home_path / "startd"


_POLICY_FIELDS: Final = {
    "CONTINUE": "continue_",
    "MaxJobRetirementTime": "max_job_retirement_time",
    "MachineMaxVacateTime": "machine_max_vacate_time",
}


def _text(said: str | float) -> str:
    return str(said).lower() if isinstance(said, bool) else str(said)
