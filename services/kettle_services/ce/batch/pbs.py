"""OpenPBS and Torque, by their commands."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kettle_services.ce.batch.asking import Asking, among, said
from kettle_services.ce.batch.port import Job, Submission, UnavailableError
from kettle_services.ce.domain.batch import extra_arguments
from kettle_services.ce.domain.batch import pbs as words_of
from kettle_services.ce.domain.batch.listed import BrokenAnswerError, ListedJob
from kettle_services.ce.domain.batch.phrases import PBS
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchEnd, BatchId, Intent


class Pbs:
    """Jobs of a server, which lists those that have ended as long as it keeps a history of them."""

    def __init__(self, asking: Asking, *, torque: bool = False, gpus: str = "") -> None:
        self._asking: Final = asking
        self._torque: Final = torque
        self._gpus: Final = gpus or ("gpus" if torque else "ngpus")
        self.settling: Final = asking.settling

    async def check(self) -> Sequence[str]:
        """Whether the server answers."""
        return await self._asking.check(["qstat", "-B"])

    async def submit(self, submission: Submission) -> BatchId:
        """The script reaches the server by standard input."""
        directives = words_of.directives(
            submission.intent,
            submission.directory,
            submission.request,
            torque=self._torque,
            gpus=self._gpus,
            log=submission.log,
        )
        script = await self._asking.script(submission, "#PBS", directives)
        words = ["qsub", *self._asking.arguments(submission, script, extra_arguments.PBS)]
        ran = await self._asking.submit(words, script.text, owner=submission.owner)
        return self._asking.taken(ran, words_of.submitted(ran.output), PBS)

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """By their names, each by a question of its own: there is none for several."""
        found: dict[Intent, BatchId] = {}
        for intent in intents:
            if ids := await self._named(intent):
                found[intent] = ids[-1]
        return found

    async def _named(self, intent: Intent) -> list[BatchId]:
        ran = await self._asking.run(["qselect", *([] if self._torque else ["-x"]), "-N", intent])
        if ran.status:
            raise UnavailableError(said(ran))
        return words_of.listed_ids(ran.output)

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """All by one question, which names them."""
        how = ["-f", "-x"] if self._torque else ["-x", "-f", "-F", "json"]
        ran = await self._asking.run(["qstat", *how, *(each.id for each in jobs)])
        if ran.status and not PBS.is_only_unknown(ran.errors):
            raise UnavailableError(said(ran))
        try:
            return among(words_of.jobs(ran.output), jobs)
        except BrokenAnswerError as error:
            raise UnavailableError(cleaned(str(error))) from None

    async def cancel(self, job: Job) -> bool:
        """The number may be another job's by now, since servers begin again: the name has to fit."""
        there = job.id in await self._named(job.intent)
        return there and await self._asking.order(["qdel", job.id], PBS, owner=job.owner)

    async def hold(self, job: Job, *, running: bool) -> None:
        """A job that runs is suspended, which operators may; else it is held."""
        await self._asking.order(
            ["qsig", "-s", "suspend", job.id] if running else ["qhold", job.id],
            PBS,
            owner="" if running else job.owner,
        )

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        await self._asking.order(
            ["qsig", "-s", "resume", job.id] if running else ["qrls", job.id],
            PBS,
            owner="" if running else job.owner,
        )

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """There are no books that could be asked: the history is in the list."""
        return {}
