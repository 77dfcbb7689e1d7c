"""The outcome of a request for claims, if the startd did not decide or a caller waits for it."""

import asyncio

import msgspec

from kettle.bus.ports import RefusedError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.startd import ClaimsDecided
from kettle_wire.jobs import JobId


class Undecided(msgspec.Struct, frozen=True):
    """What a request for claims came to without a decision of the startd."""

    reason: str
    certain: bool
    """Whether it certainly was not carried out; otherwise this is unknown."""


class PendingSwap(msgspec.Struct, frozen=True):
    """A job for which others are preempted, and the caller that waits for the decision."""

    job: JobId
    answered: asyncio.Future[None]

    def answer(self, decided: ClaimsDecided | Undecided) -> None:
        """Pass on the startd's answer."""
        if self.answered.done():
            return  # who asked waits no more
        if isinstance(decided, Undecided) and not decided.certain:
            error = RefusedError(
                RefusalCode.UNKNOWN,
                f"{decided.reason}: the jobs may have been told to make room, or not; see what became of them",
            )
            self.answered.set_exception(error)
        elif isinstance(decided, Undecided) or not (decided.granted or decided.waiting):
            self.answered.set_exception(refused(f"the machine refuses it: {decided.reason}"))
        else:
            self.answered.set_result(None)


def refused(why: str) -> RefusedError:
    """No job makes room for another, and all is as it was."""
    return RefusedError(RefusalCode.REFUSED, f"{why}; nothing was changed")
