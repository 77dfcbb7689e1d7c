"""How these files show a time: as the clocks of a zone show it, by default those of this machine."""

from datetime import datetime, tzinfo


def in_logs(at: float, zone: tzinfo | None) -> str:
    """`11/26/26 01:35:42`."""
    return f"{datetime.fromtimestamp(at, zone):%m/%d/%y %H:%M:%S}"


def at_length(at: float, zone: tzinfo | None) -> str:
    """`Thu Nov 26 01:35:42 2026`."""
    return datetime.fromtimestamp(at, zone).ctime()
