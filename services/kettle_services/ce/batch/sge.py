"""Grid Engine, by its commands."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kettle_services.ce.batch.asking import Asking, among, said
from kettle_services.ce.batch.port import Job, NotTakenError, Submission, UnavailableError
from kettle_services.ce.domain.batch import extra_arguments
from kettle_services.ce.domain.batch import sge as words_of
from kettle_services.ce.domain.batch.listed import BrokenAnswerError, ListedJob
from kettle_services.ce.domain.batch.phrases import GRID_ENGINE
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchEnd, BatchId, Intent


class GridEngine:
    """
    Jobs of a cell.  It lists no job that has ended: how one did is in its books, and in the word that the job leaves.
    """

    def __init__(self, asking: Asking, *, accounting: bool, environment: str = "", gpus: str = "") -> None:
        """
        `accounting`: whether `qacct` reads the books of the cell here; `environment` and `gpus`: what the parallel environment of several slots, and
        the resource of GPUs, are called.
        """
        self._asking: Final = asking
        self._accounting: Final = accounting
        self._environment: Final = environment or "smp"
        self._gpus: Final = gpus or "gpu"
        self.settling: Final = asking.settling

    async def check(self) -> Sequence[str]:
        """Whether the master answers."""
        await self._answer(["qconf", "-sh"])
        return []

    async def submit(self, submission: Submission) -> BatchId:
        """The script reaches the master by standard input."""
        directives = words_of.directives(
            submission.intent,
            submission.directory,
            submission.request,
            environment=self._environment,
            gpus=self._gpus,
            log=submission.log,
        )
        script = await self._asking.script(submission, "#$", directives)
        words = ["qsub", "-terse", *self._asking.arguments(submission, script, extra_arguments.GRID_ENGINE)]
        ran = await self._asking.submit(words, script.text, owner=submission.owner)
        return self._asking.taken(ran, words_of.submitted(ran.output), GRID_ENGINE)

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """By their names: those that have not ended, and those of which there are books."""
        found = {each.name: each.id for each in await self._listed(owners) if each.name in intents}
        for name in intents if self._accounting else ():
            if name not in found:
                books = await self._books(name)
                found |= {known: number for number, (known, _) in books.items() if known == name}
        return found

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """All jobs that have not ended, by one question."""
        owners = {each.owner for each in jobs if each.owner}
        asked = owners if all(each.owner for each in jobs) else ()
        return among(await self._listed(sorted(asked)), jobs)

    async def cancel(self, job: Job) -> bool:
        """By its name, which is nobody else's: numbers are used again."""
        return await self._order(["qdel", job.intent], owner=job.owner)

    async def hold(self, job: Job, *, running: bool) -> None:
        """A job that runs is suspended."""
        words = ["qmod", "-sj", job.intent] if running else ["qhold", job.intent]
        await self._order(words, owner=job.owner)

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        words = ["qmod", "-usj", job.intent] if running else ["qrls", job.intent]
        await self._order(words, owner=job.owner)

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """What `qacct` says of each; its names are theirs."""
        if not self._accounting:
            return {}
        books = await asyncio.gather(*(self._books(each.intent) for each in jobs))
        found: dict[BatchId, BatchEnd | None] = {}
        for job, book in zip(jobs, books, strict=True):
            if (ended := book.get(job.id)) is not None and ended[0] == job.intent:
                found[job.id] = ended[1]
        return found

    async def _books(self, name: str) -> dict[str, tuple[str, BatchEnd]]:
        ran = await self._asking.run(["env", "TZ=UTC0", "qacct", "-j", name])
        if ran.status and not GRID_ENGINE.is_unknown(ran.errors):
            raise UnavailableError(said(ran))
        return words_of.accounted(ran.output)

    async def _listed(self, owners: Collection[str]) -> list[ListedJob]:
        ran = await self._answer(["qstat", "-xml", "-u", ",".join(owners) or "*"])
        try:
            return list(words_of.jobs(ran))
        except BrokenAnswerError as error:
            raise UnavailableError(cleaned(str(error))) from None

    async def _answer(self, words: Sequence[str]) -> str:
        """An answer with an error is none, however the command ended."""
        ran = await self._asking.run(words)
        if ran.status or "error:" in ran.errors:
            raise UnavailableError(said(ran))
        return ran.output

    async def _order(self, words: Sequence[str], *, owner: str) -> bool:
        ran = await self._asking.run(words, owner=owner)
        told = f"{ran.output}\n{ran.errors}"
        if GRID_ENGINE.is_away(told):
            raise UnavailableError(said(ran))
        there = not GRID_ENGINE.is_unknown(told)
        if there and (ran.status or "can not be applied" in told or "denied" in told):
            raise NotTakenError(said(ran), passes=False)
        return there
