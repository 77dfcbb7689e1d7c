"""OpenPBS and Torque, by their commands."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kettle.commands.port import Ran
from kettle_services.ce.batch.asking import Asking, said
from kettle_services.ce.batch.port import InDoubtError, Job, NotTakenError, Seen, Submission, UnavailableError
from kettle_services.ce.domain.batch import pbs as words_of
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchEnd, BatchId, Intent

_PASSING: Final = (
    "would exceed",
    "Maximum number of jobs",
    "not allowed at this time",
    "Queue is not enabled",
)
"""In refusals that may pass."""


class Pbs:
    """Jobs of a server, which lists those that have ended as long as it keeps a history of them."""

    def __init__(self, asking: Asking, *, torque: bool = False, gpus: str = "") -> None:
        self._asking: Final = asking
        self._torque: Final = torque
        self._gpus: Final = gpus or ("gpus" if torque else "ngpus")
        self.settling: Final = asking.settling

    async def check(self) -> Sequence[str]:
        """Whether the server answers."""
        ran = await self._asking.run(["qstat", "-B"])
        if ran.status:
            raise UnavailableError(said(ran))
        return []

    async def submit(self, submission: Submission) -> BatchId:
        """The script reaches the server by standard input."""
        directives = words_of.directives(
            submission.intent,
            submission.directory,
            submission.request,
            torque=self._torque,
            gpus=self._gpus,
        )
        script = await self._asking.script(submission, "#PBS", directives)
        words = ["qsub", *submission.request.arguments]
        ran = await self._asking.submit(words, script, owner=submission.owner)
        id_ = words_of.submitted(ran.output)
        if ran.status == 0 and id_ is not None:
            return id_
        if words_of.is_unreachable(ran.errors):
            raise NotTakenError(said(ran), passes=True)
        if ran.status == 0 or words_of.is_silent(ran.errors):
            raise InDoubtError(said(ran))
        raise NotTakenError(said(ran), passes=any(word in ran.errors for word in _PASSING))

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """By their names, each by a question of its own: there is none for several."""
        found: dict[Intent, BatchId] = {}
        for intent in intents:
            ran = await self._asking.run(["qselect", *([] if self._torque else ["-x"]), "-N", intent])
            if ran.status:
                raise UnavailableError(said(ran))
            if (id_ := words_of.submitted(ran.output)) is not None:
                found[intent] = id_
        return found

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, Seen]:
        """All by one question, which names them."""
        how = ["-f", "-x"] if self._torque else ["-x", "-f", "-F", "json"]
        ran = await self._asking.run(["qstat", *how, *(each.id for each in jobs)])
        if ran.status and not words_of.is_only_unknown(ran.errors):
            raise UnavailableError(said(ran))
        names = {each.id: each.intent for each in jobs}
        try:
            return {
                each.id: Seen(state=each.state, words=each.words, host=each.host, end=each.end)
                for each in words_of.jobs(ran.output)
                if names.get(each.id) == each.name
            }
        except words_of.BrokenAnswerError as error:
            raise UnavailableError(cleaned(str(error))) from None

    async def cancel(self, job: Job) -> None:
        """Ids are those of a server, and are not used again."""
        await self._order(["qdel", job.id], owner=job.owner)

    async def hold(self, job: Job, *, running: bool) -> None:
        """A job that runs is suspended, which operators may; else it is held."""
        await self._order(
            ["qsig", "-s", "suspend", job.id] if running else ["qhold", job.id],
            owner="" if running else job.owner,
        )

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        await self._order(
            ["qsig", "-s", "resume", job.id] if running else ["qrls", job.id],
            owner="" if running else job.owner,
        )

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """There are no books that could be asked: the history is in the list."""
        return {}

    async def _order(self, words: Sequence[str], *, owner: str) -> None:
        ran: Ran = await self._asking.run(words, owner=owner)
        if ran.status == 0 or words_of.is_only_unknown(ran.errors):
            return
        if words_of.is_unreachable(ran.errors) or words_of.is_silent(ran.errors):
            raise UnavailableError(said(ran))
        raise NotTakenError(said(ran), passes=False)
