"""What can be set about a collector."""

from typing import Annotated

import msgspec

from kettle.runtime import OwnerSettings
from kettle.runtime.expression_types import ConditionText
from kettle.runtime.setting_types import Seconds
from kettle_wire.flocking import POOL


class CollectorSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_COLLECTOR_<FIELD>` or the table `[collector]`."""

    name: str = "collector"
    classad_lifetime: Seconds = 900.0
    """
    Seconds that an ad lives without an update (CLASSAD_LIFETIME); also how long a lost bus may hide a machine.
    """
    housekeeping: Seconds = 1.0
    """Seconds between checks for absent machines."""
    ad_interval: Seconds = 300.0
    """Seconds between repeats of the collector's own ad."""
    absent_requirements: ConditionText = ""
    """
    Which slots are kept as absent when their machine falls silent (ABSENT_REQUIREMENTS): an expression in their ads,
    `true` for all; empty: none.
    """
    absent_expire: Seconds = 30 * 86400.0
    """Seconds after the last update of an absent slot when it is deleted (ABSENT_EXPIRE_ADS_AFTER)."""
    view_pools: tuple[Annotated[str, msgspec.Meta(pattern=POOL)], ...] = ()
    """
    Other pools to which the ads of this one are forwarded, to be seen there (CONDOR_VIEW_HOST), by the names under
    which their passes were installed with `kettle flock use`.
    """
    registered_types: tuple[str, ...] = ()
    """
    Types of ads, such as `Scheduler`, that this collector is a registry of: other pools may forward here only those whose Name is theirs,
    the domain of the name under which they were admitted (`view_from`), or has it behind an `@`. Others are refused; none: all are taken.
    """
    registered_expire: Seconds = 7 * 86400.0
    """
    Seconds after the last update of an ad of `registered_types` when it is deleted; it is absent as soon as it has ended.
    """
    forward_types: tuple[str, ...] = ()
    """Of which types ads are forwarded, such as `Machine` and `Scheduler`; none: of all."""
    forward_interval: Seconds = 300.0
    """
    Seconds after which an ad is forwarded again although nothing that is watched has changed
    (COLLECTOR_FORWARD_INTERVAL); shorter than the other pool's `classad_lifetime`.
    """
    forward_watch: tuple[str, ...] = ("State", "Activity", "Cpus", "Memory", "IdleJobs", "RunningJobs")
    """
    Attributes whose change is forwarded at once (COLLECTOR_FORWARD_WATCH_LIST); none: every update is.
    """

    def __post_init__(self) -> None:
        if twice := {name for name in self.view_pools if self.view_pools.count(name) > 1}:
            raise ValueError(
                f"view_pools: {', '.join(sorted(twice))} is there more than once; name each pool once"
            )
