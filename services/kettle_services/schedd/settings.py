"""What can be set about a schedd; defaults are HTCondor's, a personal pool sets shorter times."""

from pathlib import Path
from typing import Annotated

import msgspec

from kettle.auth.mapping.rules import VO
from kettle.classad import ClassAdParseError, Node, parse
from kettle.jobs.routed_attributes import AWAITS
from kettle.jobs.sealed_attributes import SUFFIX
from kettle.runtime import OwnerSettings
from kettle.runtime.expression_types import ConditionText
from kettle.runtime.setting_types import Pause, Seconds
from kettle.runtime.settings_problems import SettingRefused
from kettle.transfer import spooled_jobs
from kettle_services.schedd.domain.jobs.policy import SystemPolicy, SystemRule
from kettle_services.schedd.domain.jobs.universes import Starting
from kettle_services.schedd.domain.submission.admission import JobTransform, SubmitRequirement
from kettle_services.schedd.domain.submission.vo_limits import VoLimits
from kettle_wire.flocking import POOL


class ScheddSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_SCHEDD_<FIELD>` or the table `[schedd]`."""

    name: str = "schedd"
    """The access point's name: its shard is `schedd.<name>`."""
    key_file: str = ""
    """
    File of the key from which the secrets of claims are made; default `$KETTLE_HOME/credentials/<name>.claims`.
    """
    seal_file: str = ""
    """
    File of the key with which environments of jobs are sealed in what is recorded; default `$KETTLE_HOME/credentials/<name>.seal`.
    """
    seal_lifetime: Pause = 0.0
    """
    Seconds after which that key is exchanged when the schedd starts; 0: never. The old one stays beside it, as
    `<name>-<id>.seal`, and opens what it has sealed. Where others have copies of these files (standbys, accounting on another
    machine), they need the new one as well.
    """
    alive_interval: Seconds = 300.0
    """Seconds between renewals of claims (ALIVE_INTERVAL)."""
    lease: Seconds = 1800.0
    """Seconds that a claim outlives its last renewal: MAX_CLAIM_ALIVES_MISSED (6) intervals."""
    shortest_job_lease: Seconds = 300.0
    """
    The shortest lease that a job can have of its own (`job_lease_duration`): its machine is asked six times as often.
    """
    longest_job_lease: Seconds = 604800.0
    """
    The longest lease: a job on a machine that was lost permanently keeps its place in the queue for that long.
    """
    lease_margin: Pause = 60.0
    """Seconds more that we wait before a job may run again, for the worker to kill what it runs."""
    reconnect_interval: Seconds = 20.0
    """Seconds between tries to reach a startd that did not answer; never more than `alive_interval`."""
    claim_worklife: float = 1200.0
    """Seconds after which a claim takes no further job (CLAIM_WORKLIFE), so that others get their turn."""
    max_failures: Annotated[int, msgspec.Meta(ge=1)] = 20
    """Attempts that may fail one after the other for reasons around the job before it is held."""
    cooldown_duration: Pause = 20.0
    """Seconds that a job whose start failed is not started again (SYSTEM_COOLDOWN_DURATION); doubled with each further
    failure in a row, up to 300."""
    claim_deadline: Seconds = 10.0
    """Seconds for a startd to answer a request for claims."""
    request_claim_timeout: Seconds = 1800.0
    """
    Seconds that a job waits for a slot whose job is being preempted (REQUEST_CLAIM_TIMEOUT); then it is matched again.
    """
    gang_deadline: Seconds = 60.0
    """
    Seconds within which all slots of a job of several nodes have to be granted; else those that were are given back.
    """
    sync_interval: Seconds = 5.0
    """Seconds between full exchanges with each shadow."""
    checkpoint_interval: Seconds = 1.0
    """Seconds between saves of the working set."""
    ad_interval: Seconds = 300.0
    """Seconds between repeats of an unchanged ad."""
    ad_floor: Pause = 0.01
    """Seconds between two versions of an ad that show new work."""
    max_jobs_per_submission: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    max_jobs_per_factory: Annotated[int, msgspec.Meta(ge=0)] = 1_000_000
    """In one submission whose jobs come into the queue little by little (max_materialize, max_idle)."""
    max_unmade_jobs_per_owner: Annotated[int, msgspec.Meta(ge=0)] = 2_000_000
    """Jobs of such submissions that are still to come into the queue."""
    max_factories_per_owner: Annotated[int, msgspec.Meta(ge=0)] = 100
    """Submissions of which jobs are still to come into the queue."""
    max_jobs_per_owner: Annotated[int, msgspec.Meta(ge=0)] = 1_000_000
    max_jobs_submitted: Annotated[int, msgspec.Meta(ge=0)] = 0
    """
    Jobs in the queue, of all owners together (MAX_JOBS_SUBMITTED); 0: no limit. Late materialization leaves a tenth
    free for jobs that are submitted at once.
    """
    max_jobs_running: Annotated[int, msgspec.Meta(ge=0)] = 0
    """On machines at a time (MAX_JOBS_RUNNING); 0: as many as get one."""
    max_running_jobs_per_owner: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Running jobs of each owner, no matter which name is charged."""
    max_backlog: Annotated[int, msgspec.Meta(ge=1)] = 50_000
    """Events that may wait for their commit before new commands are refused with `busy`."""
    jobs_may_command: bool = True
    """Whether running jobs with `want_pool_access` may submit jobs and act on those of their owner."""
    queue_super_users: tuple[str, ...] = ()
    """Users who may act on the jobs of others, and look into them while they run."""
    accounting_groups: dict[str, tuple[str, ...]] = {}
    """Accounting groups that jobs may name, each with the users who may use it; `*` is everybody."""
    uid_domain: Annotated[str, msgspec.Meta(pattern=r"^[\w.-]*$")] = ""
    """What `User` of jobs has after the name of their owner and `@` (UID_DOMAIN); empty: the name of this host."""
    significant_attributes: tuple[str, ...] = ()
    """
    Attributes that divide jobs into autoclusters besides the basic ones and those that the machines' policies look at, which
    the negotiator finds by itself.
    """

    job_transforms: tuple[JobTransform, ...] = ()
    """
    What is done to each submitted job, in their order (JOB_TRANSFORM_NAMES): tables `name`, `transform`.
    """
    submit_requirements: tuple[SubmitRequirement, ...] = ()
    """
    What a submitted job must meet (SUBMIT_REQUIREMENT_NAMES): tables `name`, `expression`, `reason`, `is_warning`.
    """

    entrypoint: bool = False
    """
    Whether a compute entrypoint (`ce`) has the name of this schedd: then jobs of the grid universe go to its batch systems.
    """
    route_jobs: ConditionText = "false"
    """
    Which submitted jobs it gives a route (JOB_ROUTER_SOURCE_JOB_CONSTRAINT); they are offered to nobody before.
    """

    vos: dict[Annotated[str, msgspec.Meta(pattern=VO)], VoLimits] = {}
    """
    The virtual organisations whose jobs it gives a route, each with the limits of a table: `max_jobs`, `max_idle`, `max_running`, `max_spool`.
    Rules of `[authorization]` say who comes for which. None: everybody's, without such limits.
    """

    flock_to: tuple[Annotated[str, msgspec.Meta(pattern=POOL)], ...] = ()
    """
    Other pools to which idle jobs may go, the first ones first (FLOCK_TO), by the names under which their passes were
    installed with `kettle flock use`.
    """
    flock_patience: Pause = 60.0
    """Seconds for which jobs of a submitter wait without a slot before one more of these pools is asked."""
    flock_by_default: bool = True
    """Whether jobs may go there that do not say so with `WantFlocking` (FLOCK_BY_DEFAULT)."""

    start_local_universe: ConditionText = "TotalLocalJobsRunning < 200"
    """
    START_LOCAL_UNIVERSE: whether one more job (TARGET) of the local universe may start; MY is the schedd's ad.
    """
    start_scheduler_universe: ConditionText = "TotalSchedulerJobsRunning < 500"
    """START_SCHEDULER_UNIVERSE: the same for the scheduler universe."""
    max_scheduler_jobs_per_owner: Annotated[int, msgspec.Meta(ge=0)] = 250
    """
    Running jobs of the scheduler universe of each owner, DAGs and those within them among them, so that one person's do not take all
    places; 0: no limit.
    """
    local_jobs_interval: Seconds = 5.0
    """
    Seconds after which these are evaluated again, and after which a refusal of the machine's startd is tried again.
    """

    max_next_job_start_delay: Pause = 600.0
    """Seconds that a job may have the next one of its owner wait (MAX_NEXT_JOB_START_DELAY)."""
    system_job_machine_attrs: tuple[str, ...] = ()
    """Attributes of slots that each job's ad keeps, as `MachineAttr<name>0` (SYSTEM_JOB_MACHINE_ATTRS)."""
    system_job_machine_attrs_history_length: Annotated[int, msgspec.Meta(ge=0)] = 1
    """For how many slots (SYSTEM_JOB_MACHINE_ATTRS_HISTORY_LENGTH), by default."""

    periodic_expr_interval: Seconds = 60.0
    """Seconds between two evaluations of the jobs' periodic policies (PERIODIC_EXPR_INTERVAL)."""
    max_periodic_expr_interval: Seconds = 1200.0
    """
    Seconds, the maximum of this interval when it is extended so that the evaluation takes only its share of the time.
    """
    periodic_expr_timeslice: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.01
    """That share."""
    system_periodic_hold: tuple[SystemRule, ...] = ()
    """
    Which jobs that are not held are held: tables `expression`, `name`, `reason`, `subcode`, tried in order.
    """
    system_periodic_release: tuple[SystemRule, ...] = ()
    """Which held jobs are released, unless their owner holds them."""
    system_periodic_remove: tuple[SystemRule, ...] = ()
    """Which jobs are removed."""
    system_periodic_vacate: tuple[SystemRule, ...] = ()
    """Which running jobs are sent back into the queue."""
    system_max_releases: Annotated[int, msgspec.Meta(ge=-1)] = -1
    """How often a job may have been held for a policy to release it; -1: without limit."""

    def __post_init__(self) -> None:
        if twice := {name for name in self.flock_to if self.flock_to.count(name) > 1}:
            raise ValueError(
                f"flock_to: {', '.join(sorted(twice))} is there more than once; name each pool once"
            )
        if self.shortest_job_lease > self.longest_job_lease:
            raise SettingRefused(
                ("shortest_job_lease",), f"it is longer than longest_job_lease ({self.longest_job_lease:g} s)"
            )
        if self.route_jobs.strip().lower() != "false" and not self.entrypoint:
            raise SettingRefused(
                ("route_jobs",),
                "nobody gives jobs routes: set entrypoint = true where a ce has the name of this schedd",
            )
        if self.vos and not self.entrypoint:
            raise SettingRefused(
                ("vos",), "they are those of a compute entrypoint: set entrypoint = true where there is one"
            )
        self.starting  # noqa: B018 - raises ValueError for what is no expression

    @property
    def transforms(self) -> tuple[JobTransform, ...]:
        """What is done to each submitted job; at last those are marked that an entrypoint is to route."""
        if not self.entrypoint:
            return self.job_transforms
        mark = (
            f"REQUIREMENTS ({self.route_jobs}) && (JobUniverse is 5 || JobUniverse is 9)\nSET {AWAITS} true"
        )
        return (*self.job_transforms, JobTransform(name="route_jobs", transform=mark))

    @property
    def starting(self) -> Starting:
        """When jobs of the local and the scheduler universe may start."""
        return Starting(
            _parsed("start_local_universe", self.start_local_universe),
            _parsed("start_scheduler_universe", self.start_scheduler_universe),
        )

    @property
    def system_policy(self) -> SystemPolicy:
        """The site's rules for all jobs."""
        return SystemPolicy(
            hold=self.system_periodic_hold,
            release=self.system_periodic_release,
            remove=self.system_periodic_remove,
            vacate=self.system_periodic_vacate,
            max_releases=self.system_max_releases,
        )

    @property
    def spool_path(self) -> Path:
        """Where its shadow keeps the files of jobs that are sent to the access point."""
        return spooled_jobs.root(self.home_path, self.name)

    @property
    def seal_path(self) -> Path:
        """Where the key is kept with which environments of jobs are sealed; accounting opens them with it."""
        return (
            Path(self.seal_file)
            if self.seal_file
            else self.home_path / "credentials" / f"{self.name}{SUFFIX}"
        )

    @property
    def key_path(self) -> Path:
        """Where the key of the claims' secrets is kept."""
        return (
            Path(self.key_file) if self.key_file else self.home_path / "credentials" / f"{self.name}.claims"
        )


def _parsed(name: str, text: str) -> Node:
    try:
        return parse(text)
    except ClassAdParseError as error:
        raise ValueError(f"{name}: {error}") from error
