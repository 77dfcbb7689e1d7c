"""What can be set about a startd; times are seconds, and the defaults are HTCondor's."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from kettle.runtime import Settings
from kettle.startd.domain.layout import SlotType
from kettle.wire.ads import Scalar

Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class StartdSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_STARTD_<FIELD>` or the table `[startd]`."""

    name: str = ""
    """The machine's name in the pool; empty: its host name."""
    num_cpus: Count = 0
    """Cores to give away; 0: all that this process may use."""
    memory: Count = 0
    """MiB to give away; 0: all that the machine has."""
    disk: Count = 0
    """KiB to give away; 0: what is free below `execute`."""
    start: str = "true"
    """START: whether the slot (MY) takes the job (TARGET)."""
    slot_types: list[SlotType] = []
    """How the machine is divided into slots (SLOT_TYPE_N); none: one partitionable slot with everything."""
    slot_weight: str = "Cpus"
    """SLOT_WEIGHT: what a slot counts for, an expression over its ad."""
    modify_request_expr: dict[str, str] = {}
    """Size of dynamic slots by resource (MODIFY_REQUEST_EXPR_REQUEST...); else rounded up: 1 core, 128 MiB, 1 MiB."""
    must_modify_request_exprs: bool = False
    """Refuse a job whose request fits only as it is, without these expressions."""
    machine_resources: dict[str, Count | list[str]] = {}
    """What else the machine has (MACHINE_RESOURCE_...): by tag a number, or the ids of the pieces."""
    machine_resource_properties: dict[str, dict[str, dict[str, Scalar]]] = {}
    """What is known about pieces, by tag and id; jobs choose by it (`require_<tag>`)."""
    offline_machine_resources: dict[str, list[str]] = {}
    """Ids by tag that are not given to jobs (OFFLINE_MACHINE_RESOURCE_...)."""
    discover_gpus: bool = True
    """Look for GPUs at the start, unless `machine_resources` names them or there is a `discovery`."""
    discovery: list[str] = []
    """Program with arguments that tells what else the machine has, as condor_gpu_discovery does."""
    attributes: dict[str, Scalar] = {}
    """More attributes of every slot (STARTD_ATTRS)."""
    execute: str = ""
    """Directory of the sandboxes; empty: `execute` in the pool's home, or one that slot accounts can reach."""
    job_account: Literal["auto", "slot", "own"] = "auto"
    """Whom jobs run as: an account per slot, which takes root, or the startd's own; auto: slot if the startd is root."""
    slot_uid_base: Annotated[int, msgspec.Meta(gt=0, lt=2**32 - 100_000)] = 1_900_000_000
    """The account of dynamic slot N has this number plus N, as user and as group; no distribution gives these out."""
    update_interval: Seconds = 300.0
    """Between repeats of an ad that has not changed."""
    activity_delay: Seconds = 1.0
    """How long the beginning or end of a job may wait to be seen in its slot's ad; resources never wait."""
    kill_timeout: Annotated[float, msgspec.Meta(ge=0)] = 600.0
    """From the soft kill signal to SIGKILL (MachineMaxVacateTime); a job may ask for less."""
    shutdown_kill_timeout: Annotated[float, msgspec.Meta(ge=0)] = 3.0
    """The same when the startd is being stopped."""
    monitor_interval: Seconds = 5.0
    """Between two measurements of a job by its starter."""
    measure_interval: Seconds = 300.0
    """Between two reports of what was measured (STARTER_UPDATE_INTERVAL)."""
    enforce_disk: bool = False
    """Hold a job that uses more disk than its slot has (STARTD_ENFORCE_DISK_LIMITS)."""
    cgroups: bool = True
    """Use control groups where the machine lets us."""
    container_runtimes: tuple[Literal["bubblewrap", "runc", "crun"], ...] = ("bubblewrap", "runc", "crun")
    """What may run containers, the most preferred first; each is tried at the start, and what fails is not used."""
    container_bind: list[str] = []
    """What every container sees of this machine: `SOURCE` or `SOURCE:DESTINATION`; read-only unless `:rw` follows."""
    container_network: Literal["host", "none"] = "host"
    """The network of containers; `none` wins over what a job asks for."""
    container_devices: list[str] = []
    """Device files that containers of jobs with GPUs see."""
    container_always: bool = False
    """Jobs that bring no image run in a container too: they see the machine's files read-only, and a /tmp of their own."""
    container_images: str = ""
    """Directory of unpacked images; empty: `images` beside the sandboxes."""
    container_images_mib: Count = 20480
    """How much of it is kept when no job uses it, and the most that one image may have."""
    transfer_plugins: list[str] = []
    """Programs that move files by URL (FILETRANSFER_PLUGINS); they go before Kettle's own."""
    transfer_methods: tuple[Literal["file", "http", "https"], ...] = ("file", "http", "https")
    """URL schemes that Kettle's own plugins move."""
    transfer_plugin_lifetime: Seconds = 72_000.0
    """How long a plugin may take for all files of a job before it is killed (MAX_FILE_TRANSFER_PLUGIN_LIFETIME)."""
    report_repeat: Seconds = 5.0
    """To the first repeat of a final report that nobody confirmed; later ones wait longer."""
    input_cache_mib: Count = 1024
    """Size of the cache of input files."""
    input_patience: Seconds = 60.0
    """How long a shadow may not know an input file that it announced: it may just have been restarted."""
    adoption_patience: Seconds = 3.0
    """How long a starter whose process is not known may take to find a startd that was restarted."""

    @property
    def state_path(self) -> Path:
        """Where the journal, the reports, the input cache and the starters' socket are."""
        return self.home_path / "startd"
