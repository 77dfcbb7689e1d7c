"""HTCondor, or another Kettle pool, by the commands that both have."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kettle.commands.phrases import HTCONDOR
from kettle_services.ce.batch.asking import Asking, among, said
from kettle_services.ce.batch.port import Job, NotTakenError, Submission, UnavailableError
from kettle_services.ce.domain.batch import htcondor as words_of
from kettle_services.ce.domain.batch.listed import BrokenAnswerError, ListedJob
from kettle_wire.batch import BatchEnd, BatchId, Intent

_SUBMIT: Final = """\
umask 077
cat >"$1/.kettle/batch.sh" && printf %s "$2" >"$1/.kettle/submit" && exec condor_submit -terse "$1/.kettle/submit"
"""
"""The script comes by standard input: its variables are nobody else's to see."""
_HOOK: Final = "#CONDOR"
"""Before the lines of a description that the site's hook prints."""
_LOOKED_AT: Final = "20000"
"""So many ended jobs are looked at for one that was in doubt."""


class Htcondor:
    """
    Jobs in the queue of one schedd; their sandboxes are on a file system that its machines share with us.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking: Final = asking
        self.settling: Final = asking.settling

    async def check(self) -> Sequence[str]:
        """Whether the schedd answers."""
        return await self._asking.check(["condor_q", "-totals"])

    async def submit(self, submission: Submission) -> BatchId:
        """A description in the sandbox, and the script beside it."""
        if submission.request.arguments:
            raise NotTakenError(
                "BatchExtraSubmitArgs of the job: condor_submit is told nothing by a job of HTCondor; what a site wants said is printed by its hook",
                passes=False,
            )
        script = await self._asking.script(submission, _HOOK, [])
        more = [line.removeprefix(_HOOK).strip() for line in script.site]
        try:
            text = words_of.description(submission.intent, submission.directory, submission.request, more)
        except words_of.UnwritableError as error:
            raise NotTakenError(str(error), passes=False) from None
        words = ["sh", "-c", _SUBMIT, "sh", submission.directory, text]
        ran = await self._asking.submit(words, script.text, owner=submission.owner)
        return self._asking.taken(ran, words_of.submitted(ran.output), HTCONDOR)

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """In the queue, and then among those that have left it."""
        constraint = words_of.of_us(sorted(intents))
        found = {each.name: each.id for each in await self._queue(constraint)}
        if rest := sorted({*intents} - {*found}):
            left = await self._answer(
                ["condor_history", "-constraint", words_of.of_us(rest), "-scanlimit", _LOOKED_AT]
            )
            found |= {each.name: each.id for each in left}
        return found

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """One question for all."""
        return among(await self._queue(f"{words_of.NAME} isnt undefined"), jobs)

    async def cancel(self, job: Job) -> bool:
        """The number may be another job's by now: the name has to fit."""
        return await self._order("condor_rm", job)

    async def hold(self, job: Job, *, running: bool) -> None:
        """A job that runs is suspended; else it is held."""
        await self._order("condor_suspend" if running else "condor_hold", job)

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        await self._order("condor_continue" if running else "condor_release", job)

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """What the history says, and the queue: a job that is there has not ended."""
        left = await self._answer(["condor_history", *(each.id for each in jobs)])
        return {id_: each.end for id_, each in among(left, jobs).items() if each.end is not None}

    async def _queue(self, constraint: str) -> list[ListedJob]:
        return await self._answer(["condor_q", "-allusers", "-constraint", constraint])

    async def _answer(self, words: Sequence[str]) -> list[ListedJob]:
        ran = await self._asking.run([*words, "-attributes", ",".join(words_of.SHOWN), "-json"])
        if ran.status:
            raise UnavailableError(said(ran))
        try:
            return list(words_of.jobs(ran.output))
        except BrokenAnswerError as error:
            raise UnavailableError(str(error)) from None

    async def _order(self, command: str, job: Job) -> bool:
        return await self._asking.order(
            [command, "-constraint", words_of.one(job.id, job.intent)], HTCONDOR, owner=job.owner
        )
