"""LSF, by its commands."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kettle_services.ce.batch.asking import Asking, said
from kettle_services.ce.batch.port import InDoubtError, Job, NotTakenError, Seen, Submission, UnavailableError
from kettle_services.ce.domain.batch import lsf as words_of
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchEnd, BatchId, Intent

_PASSING: Final = ("limit", "Queue is closed", "not accepting", "Too many")
"""In refusals that may pass."""


class Lsf:
    """Jobs of a cluster, which lists those that have ended for an hour (CLEAN_PERIOD)."""

    def __init__(self, asking: Asking) -> None:
        self._asking: Final = asking
        self.settling: Final = asking.settling

    async def check(self) -> Sequence[str]:
        """Whether the daemon answers."""
        ran = await self._asking.run(["bqueues"])
        if ran.status:
            raise UnavailableError(said(ran))
        return []

    async def submit(self, submission: Submission) -> BatchId:
        """The script reaches the daemon by standard input."""
        directives = words_of.directives(submission.intent, submission.directory, submission.request)
        script = await self._asking.script(submission, "#BSUB", directives)
        words = ["bsub", *submission.request.arguments]
        ran = await self._asking.submit(words, script, owner=submission.owner)
        number = words_of.submitted(ran.output)
        if ran.status == 0 and number is not None:
            return number
        if ran.status == 0 or words_of.is_unreachable(ran.errors):
            # `bsub` asks again and again by itself: that it gives up does not say whether one of its questions arrived.
            raise InDoubtError(said(ran))
        raise NotTakenError(said(ran), passes=any(word in ran.errors for word in _PASSING))

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """By their names, each by a question of its own: there is none for several."""
        found: dict[Intent, BatchId] = {}
        for intent in intents:
            for each in await self._listed(["-J", intent]):
                if each.name == intent:
                    found[intent] = each.id
        return found

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, Seen]:
        """All by one question, which names them."""
        names = {each.id: each.intent for each in jobs}
        return {
            each.id: Seen(state=each.state, words=each.words, host=each.host, end=each.end)
            for each in await self._listed(list(names))
            if names.get(each.id) == each.name
        }

    async def cancel(self, job: Job) -> None:
        """By its name as well: numbers are used again."""
        await self._order(["bkill", "-J", job.intent, job.id], owner=job.owner)

    async def hold(self, job: Job, *, running: bool) -> None:
        """It is the same for one that runs, and one that waits."""
        await self._order(["bstop", "-J", job.intent, job.id], owner=job.owner)

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        await self._order(["bresume", "-J", job.intent, job.id], owner=job.owner)

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """There are no books that could be asked quickly: those that ended lately are in the list."""
        return {}

    async def _listed(self, which: Sequence[str]) -> list[words_of.LsfJob]:
        ran = await self._asking.run(["bjobs", "-a", "-u", "all", "-json", "-o", words_of.COLUMNS, *which])
        if "{" not in ran.output and words_of.is_unknown(ran.errors):
            return []
        if (ran.status and not words_of.is_unknown(ran.errors)) or words_of.is_unreachable(ran.errors):
            raise UnavailableError(said(ran))
        try:
            return list(words_of.jobs(ran.output))
        except words_of.BrokenAnswerError as error:
            raise UnavailableError(cleaned(str(error))) from None

    async def _order(self, words: Sequence[str], *, owner: str) -> None:
        ran = await self._asking.run(words, owner=owner)
        if ran.status == 0 or words_of.is_unknown(ran.errors):
            return
        if words_of.is_unreachable(ran.errors):
            raise UnavailableError(said(ran))
        raise NotTakenError(said(ran), passes=False)
