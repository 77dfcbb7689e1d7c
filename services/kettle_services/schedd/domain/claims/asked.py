"""
How many claims are being asked for, so that no job is asked for twice and no limit is exceeded meanwhile.
"""

from collections import Counter
from typing import Final

from kettle_services.schedd.domain.negotiation.concurrency_limits import LimitsInUse
from kettle_wire.commands.schedd import MatchedSlot

JobsAlikeKey = tuple[str, int]
"""Submitter and autocluster."""


class AskedClaims:
    """The claims that one schedd asks for: their jobs are spoken for."""

    def __init__(self) -> None:
        self.jobs: Final[Counter[JobsAlikeKey]] = Counter()
        """For how many jobs alike claims are being asked for."""
        self.limits: Final = LimitsInUse()
        """Concurrency limits that these claims will use."""

    def enter(self, match: MatchedSlot, claims: int) -> None:
        """So many claims are asked for on a slot, each for a job."""
        self.jobs[match.submitter, match.autocluster] += claims
        self.limits.count(match.submitter, match.limits, claims)

    def leave(self, match: MatchedSlot, claims: int) -> None:
        """Inverse of `enter`."""
        self.leave_job((match.submitter, match.autocluster), claims)
        self.limits.count(match.submitter, match.limits, -claims)

    def leave_job(self, key: JobsAlikeKey, jobs: int = 1) -> None:
        """So many jobs are not spoken for any more."""
        self.jobs[key] -= jobs
        if not self.jobs[key]:
            del self.jobs[key]
