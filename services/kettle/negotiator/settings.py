"""What can be set about a negotiator."""

from kettle.runtime import OwnerSettings


class NegotiatorSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_NEGOTIATOR_<FIELD>` or the table `[negotiator]`."""

    name: str = "negotiator"
    interval: float = 60.0
    """Seconds after which a cycle starts even if nothing is known to have changed (NEGOTIATOR_INTERVAL)."""
    min_interval: float = 0.02
    """Seconds from the start of a cycle to the start of the next."""
    trust: float = 2.0
    """Seconds for which a match is believed to be used before the slot's own ad says so."""
    match_deadline: float = 5.0
    """Seconds for a schedd to take its matches."""
    remembered: int = 500
    """Frames of the record that are read at start, to answer `why`."""
    ad_interval: float = 300.0
    """Seconds between repeats of the negotiator's ad."""
