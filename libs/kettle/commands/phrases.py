"""What the errors of a batch system's commands mean, by the phrases that are in them."""

import re
from typing import Final


class Phrases:
    """Of one system: a table of patterns, which may be anywhere in what its commands write."""

    def __init__(self, *, unreachable: str = "", silent: str = "", unknown: str, passing: str = "") -> None:
        """
        `unreachable`: it was not reached, so nothing was done; `silent`: it was asked, and its answer did not come; `unknown`: it answered,
        and has no such job, or one that has ended; `passing`: it refuses something that it may take later. Empty: there is none; capitals do not count.
        """
        self._unreachable, self._silent, self._unknown, self._passing = (
            re.compile(each or r"(?!)", re.IGNORECASE) for each in (unreachable, silent, unknown, passing)
        )

    def is_unreachable(self, errors: str) -> bool:
        """Whether it was not reached, so nothing was done."""
        return self._unreachable.search(errors) is not None

    def is_silent(self, errors: str) -> bool:
        """Whether it was asked, and its answer did not come."""
        return self._silent.search(errors) is not None

    def is_away(self, errors: str) -> bool:
        """Whether there is no answer, for one reason or the other."""
        return self.is_unreachable(errors) or self.is_silent(errors)

    def is_unknown(self, errors: str) -> bool:
        """Whether it answered, and has no such job, or one that has ended."""
        return self._unknown.search(errors) is not None

    def is_only_unknown(self, errors: str) -> bool:
        """Whether that is all that is wrong."""
        lines = [line for line in errors.splitlines() if line.strip()]
        return bool(lines) and all(map(self._unknown.search, lines))

    def passes(self, errors: str) -> bool:
        """Whether what was refused may be taken later."""
        return self.is_unreachable(errors) or self._passing.search(errors) is not None


SLURM: Final = Phrases(
    unreachable=r"Unable to contact slurm controller \(connect failure\)|failed to fetch config|not establish a configuration source",
    silent=r"Unable to contact slurm controller \((send|receive|shutdown)|Socket timed out|Zero Bytes were transmitted|Unexpected message received|"
    r"Message (receive|send) failure|Transport endpoint|Connection (reset|timed out)|Communication",
    unknown=r"Invalid job id specified",
    passing=r"temporarily unable to accept|Resource temporarily unavailable|job queue full|rate limit|RPC limit|job submit limit|Job violates accounting/QOS policy|submission is disabled|Slurm backup controller in standby",
)
"""Of Slurm."""
HTCONDOR: Final = Phrases(
    unreachable=r"Can't find address|Failed to connect|Couldn't contact|cannot be reached|is not running|no answer|does not answer|"
    r"Unable to (locate|connect)|Can't connect|Failed to fetch ads|no pool|was not reached",
    silent=r"Failed to commit|lost (its|the) connection|connection (closed|reset|lost)|timed out|Deadline",
    unknown=r"(Couldn't|could not|Could not) find|not found|matching constraint|No jobs? (match|met)|Permission denied to .* of no job",
    passing=r"MAX_JOBS_(SUBMITTED|PER_OWNER|PER_SUBMISSION)|too many jobs|Number of submitted jobs would exceed",
)
"""Of HTCondor, and of its commands in another Kettle pool."""
