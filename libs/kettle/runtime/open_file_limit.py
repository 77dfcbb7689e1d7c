"""
How many files a service may have open: more than the usual 1,024, which a startd of a large machine needs for the lines to its
starters alone.  Its jobs keep the limit that the service was started with: programs that use select(2) rely on a small one.
"""

import resource
from typing import Final

ENOUGH: Final = 1 << 16
INHERITED: Final = resource.getrlimit(resource.RLIMIT_NOFILE)
"""The limits, soft and hard, with which this process was started."""


def allow_many() -> None:
    """Raise our own limit, as far as the hard one lets us."""
    soft, hard = INHERITED
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def restore(pid: int) -> None:
    """Give a child that we have not reaped the limits with which we were started."""
    resource.prlimit(pid, resource.RLIMIT_NOFILE, INHERITED)
