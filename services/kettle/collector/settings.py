"""What can be set about a collector."""

from kettle.runtime import OwnerSettings


class CollectorSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_COLLECTOR_<FIELD>` or the table `[collector]`."""

    name: str = "collector"
    classad_lifetime: float = 900.0
    """Seconds that an ad lives without an update (CLASSAD_LIFETIME); also how long a lost bus may hide a machine."""
    housekeeping: float = 1.0
    """Seconds between looks for machines that stayed away."""
    ad_interval: float = 300.0
    """Seconds between repeats of the collector's own ad."""
    absent_requirements: str = ""
    """
    Which slots are kept as absent when their machine falls silent (ABSENT_REQUIREMENTS): an expression in their ads,
    `true` for all; empty: none.
    """
    absent_expire: float = 30 * 86400.0
    """Seconds after the last word of an absent slot when it is forgotten (ABSENT_EXPIRE_ADS_AFTER)."""
