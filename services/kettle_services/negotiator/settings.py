"""What can be set about a negotiator."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from kettle.classad import ClassAdParseError, Node, parse
from kettle.jobs.concurrency_limits import is_name, is_prefix
from kettle.matchmaking import SORT, GroupError, GroupRule, LimitRules, Policy, Ranks, Tree
from kettle.runtime import OwnerSettings
from kettle.runtime.expression_types import ConditionText, NumberText
from kettle.runtime.setting_types import Pause, Seconds
from kettle.runtime.settings_problems import SettingRefused
from kettle_services.negotiator.domain.preemption import RANK, Preemption
from kettle_services.negotiator.domain.principals import Factors
from kettle_services.negotiator.domain.reservations import ReservationTerms

Count = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Factor = Annotated[float, msgspec.Meta(ge=1, le=1e18)]


class NegotiatorSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_NEGOTIATOR_<FIELD>` or the table `[negotiator]`."""

    name: str = "negotiator"
    interval: Seconds = 60.0
    """Seconds after which a cycle starts even if nothing is known to have changed (NEGOTIATOR_INTERVAL)."""
    min_interval: Pause = 0.02
    """Seconds from the start of a cycle to the start of the next."""
    trust: Pause = 2.0
    """Seconds for which a match counts as used before the slot's own ad shows it."""
    gang_patience: Seconds = 300.0
    """Seconds for which a job of several nodes finds too few free slots before these are kept for it."""
    gang_reservation: Annotated[float, msgspec.Meta(ge=0)] = 1800.0
    """
    Seconds for which free slots are kept for the job of several nodes that has waited longest, and then are not, by turns; 0: no
    slot is kept.
    """
    match_deadline: Seconds = 5.0
    """Seconds for a schedd to accept its matches."""
    remembered: int = 500
    """Frames of the record that are read at start, to answer `why`."""
    ad_interval: Seconds = 300.0
    """Seconds between repeats of the negotiator's ad."""
    administrators: tuple[str, ...] = ()
    """Users who may set priorities and reset usage, besides the account that this service runs as."""
    priority_halflife: Seconds = 86_400.0
    """Seconds in which half of what somebody has used is forgotten (PRIORITY_HALFLIFE)."""
    default_prio_factor: _Factor = 1000.0
    """Priority factor of those for whom none was set (DEFAULT_PRIO_FACTOR)."""
    nice_user_prio_factor: _Factor = 1e10
    """The factor of submitters whose names begin with `nice-user.` (NICE_USER_PRIO_FACTOR)."""
    remote_prio_factor: _Factor = 1e7
    """The factor of submitters of another domain than the accountant's (REMOTE_PRIO_FACTOR)."""
    accountant_local_domain: str = ""
    """Submitters `name@domain` of other domains are remote (ACCOUNTANT_LOCAL_DOMAIN); empty: nobody is."""
    charge_interval: Annotated[float, msgspec.Meta(ge=0.1)] = 60.0
    """Seconds between two records of what submitters use; what happens in between is charged exactly."""
    groups: dict[str, GroupRule] = {}
    """Accounting groups by their names (GROUP_NAMES), each with its configuration."""
    group_accept_surplus: bool = False
    """Groups that do not say may use what others leave (GROUP_ACCEPT_SURPLUS)."""
    group_autoregroup: bool = False
    """Their submitters are served once more among those without a group (GROUP_AUTOREGROUP)."""
    group_sort_expr: NumberText = SORT
    """Which group is served first: the one with the smallest number (GROUP_SORT_EXPR)."""
    group_quota_max_allocation_rounds: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    """How often in a cycle it is shared out among groups what others could not use."""
    allow_quota_oversubscription: bool = False
    """Quotas of groups may be more together than their parent's (NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION)."""

    concurrency_limits: dict[str, Count] = {}
    """Of what there is only so much, by the names that jobs use (<NAME>_LIMIT)."""
    concurrency_limit_defaults: dict[str, Count] = {}
    """
    How much there is of each `prefix.name` that has no limit, by prefix (CONCURRENCY_LIMIT_DEFAULT_<prefix>).
    """
    concurrency_limit_default: Count = 2_308_032.0
    """How much there is of what has no limit otherwise (CONCURRENCY_LIMIT_DEFAULT)."""

    pre_job_rank: NumberText = ""
    """
    Which slots come first, before the job's own rank: an expression of the slot (MY) and the job (TARGET), the
    largest number first (NEGOTIATOR_PRE_JOB_RANK); empty: all are alike.
    """
    post_job_rank: NumberText = ""
    """The rank of slots that pre_job_rank and the job rank alike (NEGOTIATOR_POST_JOB_RANK)."""

    consider_preemption: bool = True
    """Look at slots that are in use for jobs that find no free one (NEGOTIATOR_CONSIDER_PREEMPTION)."""
    preemption_requirements: ConditionText = ""
    """
    When a slot's (MY) job is preempted by one (TARGET) of a submitter with a better priority, as `RemoteUserPrio >
    TARGET.SubmitterUserPrio * 1.2` (PREEMPTION_REQUIREMENTS); empty: never. Machines have to permit it:
    `user_preemption` of startds.
    """
    preemption_rank: NumberText = RANK
    """Which slot is preempted first: the one with the largest number (PREEMPTION_RANK)."""
    allow_pslot_preemption: bool = False
    """Several jobs on one machine may be preempted together for a larger one (ALLOW_PSLOT_PREEMPTION)."""

    def __post_init__(self) -> None:
        self.group_policy  # noqa: B018 - raises SettingRefused for what makes no sense
        self.limit_rules  # noqa: B018 - the same
        self.ranks  # noqa: B018 - the same
        self.preemption  # noqa: B018 - the same

    @property
    def ranks(self) -> Ranks:
        """The pool's ranks of slots and jobs besides the jobs' own Rank."""
        return Ranks(
            _optional("pre_job_rank", self.pre_job_rank), _optional("post_job_rank", self.post_job_rank)
        )

    @property
    def rules(self) -> list[str]:
        """Expressions of the pool that look at jobs."""
        rules = [self.pre_job_rank, self.post_job_rank]
        if self.preemption_requirements:
            rules += [self.preemption_requirements, self.preemption_rank]
        return [text for text in rules if text]

    @property
    def reservations(self) -> ReservationTerms:
        """When slots are kept for jobs of several nodes."""
        if not self.gang_reservation:
            return ReservationTerms()
        return ReservationTerms(patience=self.gang_patience, longest=self.gang_reservation)

    @property
    def preemption(self) -> Preemption:
        """The rules of preemption."""
        return Preemption(
            self.consider_preemption,
            _optional("preemption_requirements", self.preemption_requirements),
            _optional("preemption_rank", self.preemption_rank),
            self.allow_pslot_preemption,
        )

    @property
    def factors(self) -> Factors:
        """Priority factors of those for whom none was set."""
        return Factors(
            default=self.default_prio_factor,
            nice=self.nice_user_prio_factor,
            remote=self.remote_prio_factor,
            local_domain=self.accountant_local_domain,
        )

    @property
    def limit_rules(self) -> LimitRules:
        """How much there is of what jobs use by concurrency limits."""
        return LimitRules(
            _by_limit("concurrency_limits", self.concurrency_limits, is_name),
            _by_limit("concurrency_limit_defaults", self.concurrency_limit_defaults, is_prefix),
            self.concurrency_limit_default,
        )

    @property
    def group_policy(self) -> Policy:
        """How accounting groups are served."""
        try:
            tree = Tree(
                self.groups,
                accept_surplus=self.group_accept_surplus,
                autoregroup=self.group_autoregroup,
                oversubscription=self.allow_quota_oversubscription,
            )
        except GroupError as error:
            raise SettingRefused(("groups", error.group), str(error)) from error
        sort = _parsed("group_sort_expr", self.group_sort_expr)
        return Policy(tree, sort, self.group_quota_max_allocation_rounds)


def _by_limit(setting: str, said: dict[str, float], known: Callable[[str], bool]) -> dict[str, float]:
    """How much there is, by names in lower case."""
    most: dict[str, float] = {}
    for name, number in said.items():
        if not known(name):
            raise SettingRefused(
                (setting, name),
                f"no job can name '{name}': letters, digits and _, at first no digit; a limit may be PREFIX.NAME, "
                "a default is of a PREFIX",
            )
        if name.lower() in most:
            raise SettingRefused((setting, name), f"{name} is there twice: upper and lower case are the same")
        most[name.lower()] = number
    return most


def _optional(name: str, text: str) -> Node | None:
    return _parsed(name, text) if text.strip() else None


def _parsed(name: str, text: str) -> Node:
    try:
        return parse(text)
    except ClassAdParseError as error:
        raise SettingRefused((name,), f"{name} is no expression: {error}") from error
