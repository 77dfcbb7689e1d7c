"""Asking the commands of a batch system, with its site's directives."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kettle.commands.phrases import Phrases
from kettle.commands.port import CommandError, Commands, EndNotSeenError, NotStartedError, Ran
from kettle_services.ce.batch.port import InDoubtError, Job, NotTakenError, Submission, UnavailableError
from kettle_services.ce.domain.batch.extra_arguments import OwnOptions
from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchId


class Script(msgspec.Struct, frozen=True):
    """What is given to a command that submits."""

    text: str
    site: Sequence[str]
    """Directives in it that the site's hook has printed."""


class Asking:
    """What the adapters have in common."""

    def __init__(
        self, commands: Commands, *, patience: float, hook: str = "", settling: float = 60.0
    ) -> None:
        self._commands: Final = commands
        self._patience: Final = patience
        self._hook: Final = hook
        self.settling: Final = settling + patience + commands.lingering

    async def run(self, words: Sequence[str], *, owner: str = "") -> Ran:
        """What a command says.  Raises UnavailableError if it says nothing."""
        try:
            return await self._commands.run(words, within=self._patience, account=owner)
        except CommandError as error:
            raise UnavailableError(cleaned(str(error))) from None

    async def submit(self, words: Sequence[str], script: str, *, owner: str) -> Ran:
        """
        What a command that submits says.

        Raises:
            NotTakenError: it was not run.
            InDoubtError: it was, and its end was not seen.
        """
        try:
            ran = await self._commands.run(words, script, within=self._patience, account=owner)
        except NotStartedError as error:
            raise NotTakenError(cleaned(str(error)), passes=True) from None
        except EndNotSeenError as error:
            raise InDoubtError(cleaned(str(error))) from None
        if ran.status < 0:
            raise InDoubtError(f"{words[0]} was ended by signal {-ran.status}")
        return ran

    @staticmethod
    def arguments(submission: Submission, script: Script, own: OwnOptions) -> list[str]:
        """
        What the command that submits is told besides: who the job is, as its script says, and then what the job wants.

        Raises:
            NotTakenError: that is not the job's to say.
        """
        request = submission.request
        if word := own.refused(request.arguments):
            raise NotTakenError(
                f"BatchExtraSubmitArgs of the job has {cleaned(word)!r}: its name, account, queue, script and output are said by its route and by "
                "the entrypoint; the attributes BatchQueue and BatchProject are for the queue and the account",
                passes=False,
            )
        if word := own.refused(request.arguments, strict=request.strict, said=own.said_by(script.site)):
            raise NotTakenError(
                f"BatchExtraSubmitArgs of the job has {cleaned(word)!r}, which its route or the site's hook has decided: how much it gets, for how "
                "long and in whose share is said by attributes (RequestCpus, RequestMemory, RequestGPUs, MachineCount, BatchRuntime)",
                passes=False,
            )
        return [*own.said_in(script.text), *request.arguments]

    async def check(self, words: Sequence[str]) -> Sequence[str]:
        """Whether a question is answered; nothing is wrong otherwise.  Raises UnavailableError."""
        ran = await self.run(words)
        if ran.status:
            raise UnavailableError(said(ran))
        return []

    def taken(self, ran: Ran, id_: BatchId | None, phrases: Phrases) -> BatchId:
        """
        The id that a command that submits has told.

        Raises:
            NotTakenError: nothing was submitted.
            InDoubtError: nobody knows.
        """
        if ran.status == 0 and id_ is not None:
            return id_
        if ran.status == 0 or phrases.is_silent(ran.errors):
            raise InDoubtError(said(ran))
        raise NotTakenError(said(ran), passes=phrases.passes(ran.errors))

    async def order(self, words: Sequence[str], phrases: Phrases, *, owner: str) -> bool:
        """
        Have something done to a job; that it is not there any more is no fault.  False: that is the answer.

        Raises:
            UnavailableError: there is no answer.
            NotTakenError: it is refused.
        """
        ran = await self.run(words, owner=owner)
        if ran.status == 0:
            return True
        if phrases.is_away(ran.errors):
            raise UnavailableError(said(ran))
        if not phrases.is_unknown(ran.errors):
            raise NotTakenError(said(ran), passes=False)
        return False

    async def script(self, submission: Submission, prefix: str, directives: Sequence[str]) -> Script:
        """
        The script with directives, each behind `prefix`, and with those of the site's hook, which are written as it prints them.

        Raises:
            NotTakenError: the hook fails.
        """
        site = await self._more(submission, prefix)
        lines = [f"{prefix} {each}" for each in directives] + site
        return Script("\n".join(["#!/bin/sh", *lines, submission.script]), site)

    async def _more(self, submission: Submission, prefix: str) -> list[str]:
        """
        What the hook prints.  It runs as the owner of the job: who submits names its variables, but for those known to steer programs.
        """
        if not self._hook:
            return []
        told = (f"{name}={value}" for name, value in submission.request.extra.items())
        words = ["env", "CondorCE=1", *told, self._hook]
        try:
            ran = await self._commands.run(words, within=self._patience, account=submission.owner)
        except CommandError as error:
            raise NotTakenError(f"the site's hook {self._hook}: {cleaned(str(error))}", passes=True) from None
        if ran.status:
            raise NotTakenError(f"the site's hook {self._hook} failed: {said(ran)}", passes=True)
        return [line for line in ran.output.splitlines() if line.startswith(prefix)]

    async def close(self) -> None:
        """Give up connections."""
        await self._commands.close()


def among(listed: Iterable[ListedJob], jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
    """What is listed of these jobs, which carry their names: numbers are used again."""
    names = {each.id: each.intent for each in jobs}
    return {each.id: each for each in listed if names.get(each.id) == each.name}


def said(ran: Ran) -> str:
    """What a command that failed wrote."""
    return cleaned(ran.errors) or cleaned(ran.output) or f"it ended with status {ran.status} and said nothing"
