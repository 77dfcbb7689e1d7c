"""LSF, by its commands."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kettle_services.ce.batch.asking import Asking, among, said
from kettle_services.ce.batch.port import Job, Submission, UnavailableError
from kettle_services.ce.domain.batch import extra_arguments
from kettle_services.ce.domain.batch import lsf as words_of
from kettle_services.ce.domain.batch.listed import BrokenAnswerError, ListedJob
from kettle_services.ce.domain.batch.phrases import LSF
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchEnd, BatchId, Intent


class Lsf:
    """Jobs of a cluster, which lists those that have ended for an hour (CLEAN_PERIOD)."""

    def __init__(self, asking: Asking) -> None:
        self._asking: Final = asking
        self.settling: Final = asking.settling

    async def check(self) -> Sequence[str]:
        """Whether the daemon answers."""
        return await self._asking.check(["bqueues"])

    async def submit(self, submission: Submission) -> BatchId:
        """The script reaches the daemon by standard input."""
        directives = words_of.directives(
            submission.intent, submission.directory, submission.request, log=submission.log
        )
        script = await self._asking.script(submission, "#BSUB", directives)
        words = ["bsub", *self._asking.arguments(submission, script, extra_arguments.LSF)]
        ran = await self._asking.submit(words, script.text, owner=submission.owner)
        return self._asking.taken(ran, words_of.submitted(ran.output), LSF)

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """By their names, each by a question of its own: there is none for several."""
        found: dict[Intent, BatchId] = {}
        for intent in intents:
            for each in await self._listed(["-J", intent]):
                if each.name == intent:
                    found[intent] = each.id
        return found

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """All by one question, which names them."""
        return among(await self._listed([each.id for each in jobs]), jobs)

    async def cancel(self, job: Job) -> bool:
        """By its name as well: numbers are used again."""
        return await self._asking.order(["bkill", "-J", job.intent, job.id], LSF, owner=job.owner)

    async def hold(self, job: Job, *, running: bool) -> None:
        """It is the same for one that runs, and one that waits."""
        await self._asking.order(["bstop", "-J", job.intent, job.id], LSF, owner=job.owner)

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        await self._asking.order(["bresume", "-J", job.intent, job.id], LSF, owner=job.owner)

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """There are no books that could be asked quickly: those that ended lately are in the list."""
        return {}

    async def _listed(self, which: Sequence[str]) -> list[ListedJob]:
        ran = await self._asking.run(["bjobs", "-a", "-u", "all", "-json", "-o", words_of.COLUMNS, *which])
        if "{" not in ran.output and LSF.is_unknown(ran.errors):
            return []
        if (ran.status and not LSF.is_unknown(ran.errors)) or LSF.is_away(ran.errors):
            raise UnavailableError(said(ran))
        try:
            return list(words_of.jobs(ran.output))
        except BrokenAnswerError as error:
            raise UnavailableError(cleaned(str(error))) from None
