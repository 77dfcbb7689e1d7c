"""How these files show a time: as the clocks of a zone show it, by default those of this machine."""

from datetime import datetime, tzinfo
from functools import lru_cache


def in_logs(at: float, zone: tzinfo | None) -> str:
    """`11/26/26 01:35:42`."""
    return _in_logs(int(at), zone)


@lru_cache(maxsize=64)
def _in_logs(second: int, zone: tzinfo | None) -> str:
    """Hundreds of lines are of one second."""
    return f"{datetime.fromtimestamp(second, zone):%m/%d/%y %H:%M:%S}"


def at_length(at: float, zone: tzinfo | None) -> str:
    """`Thu Nov 26 01:35:42 2026`."""
    return datetime.fromtimestamp(at, zone).ctime()
