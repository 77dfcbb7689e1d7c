"""The page of what goes wrong, grouped by cause."""

from typing import ClassVar, Final

import msgspec

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.pool.parameters import narrowed
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.failures import LIST_FAILURES, Failure, FailureKind, Failures, ListFailures
from kettle_wire.rest.route import Moment

KINDS: Final[dict[FailureKind, str]] = {
    "held": "jobs on hold",
    "exit": "jobs that failed",
    "signal": "jobs that a signal ended",
    "attempt": "attempts that ended early",
}


class AskedFailures(ListFailures, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which causes."""

    as_of: Moment | None = None
    """When the time ends that is looked at, unless `until` says something else."""


class FailuresView(msgspec.Struct, frozen=True, kw_only=True):
    """Causes, the most frequent first."""

    asked: AskedFailures
    found: Failures
    kinds: ClassVar[dict[FailureKind, str]] = KINDS

    @property
    def most(self) -> int:
        """How often the most frequent one occurred."""
        return max((each.count for each in self.found.failures), default=0)

    def jobs(self, failure: Failure) -> tuple[str, dict[str, str]] | None:
        """The list of jobs that a cause has; None: no list has just these."""
        match failure.kind:
            case "held":
                return "/jobs", {"state": "held"}
            case "exit":
                return "/history", {"filter": f"ExitCode == {failure.code}"}
            case "signal":
                number = f"ExitSignal == {failure.code}" if failure.code is not None else "true"
                return "/history", {"filter": f"ExitBySignal && {number}"}
            case "attempt":
                return None


FAILURES: Final = Page(
    "/failures", "Failures", template="pool/failures.html", parameters=AskedFailures, link=Link("Jobs", 60)
)


class FailurePages:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def failures(self, asked: Asked) -> Shown:
        """Causes of failures in some time."""
        parameters: AskedFailures = asked.parameters
        found = await self._questions.ask(
            asked,
            LIST_FAILURES,
            narrowed(parameters, ListFailures, until=parameters.until or parameters.as_of),
            Failures,
        )
        return Shown(FailuresView(asked=parameters, found=found), frames=found.frames)
