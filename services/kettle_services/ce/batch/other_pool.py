"""
Another Kettle pool, by its own client: as its user, with a token or a key, over one connection that lasts.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from kettle.classad.printing import quoted_string
from kettle.client import Client, ClientError, CommandRefusedError, select
from kettle.client.connections.locating import locate
from kettle.client.jobs.submission import prepare
from kettle.submit import Submission as Prepared
from kettle.submit import SubmitError
from kettle_services.ce.batch.asking import Asking, among
from kettle_services.ce.batch.port import InDoubtError, Job, NotTakenError, Submission, UnavailableError
from kettle_services.ce.domain.batch import htcondor as words_of
from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchEnd, BatchId, Intent
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.queue import Action, JobOutcome, Select

_REMEMBERED_S: Final = 30 * 86_400.0
"""So far back its history is looked through for a job whose submission was in doubt."""
_PASSES: Final = frozenset(
    {
        RefusalCode.BEHIND,
        RefusalCode.BUSY,
        RefusalCode.CE_DRAINING,
        RefusalCode.CE_VO_FULL,
        RefusalCode.CE_VO_SPOOL_FULL,
        RefusalCode.DENIED,  # a token that is over is renewed where it lies
        RefusalCode.LIMIT,
        RefusalCode.NOT_READY,
        RefusalCode.NOT_RECORDED,
        RefusalCode.STOPPING,
        RefusalCode.UNAVAILABLE,
    }
)
"""Refusals after which the same submission may be taken."""
_SCRIPT: Final = ".kettle/batch.sh"
HOOK: Final = "#KETTLE"
"""Before the lines of a description that the site's hook prints."""


class OtherPool:
    """
    Jobs in the queue of another pool's access point, all of them those of the person whose credential is shown.

    A submission has the intent as its id, so that one that is said again is the same one to that pool.
    """

    def __init__(self, environment: Mapping[str, str], asking: Asking, *, patience: float) -> None:
        """
        `environment` says where the pool is and with which credential, as it does for commands: KETTLE_POOL_URL, KETTLE_HOME,
        BEARER_TOKEN_FILE.  `asking` asks the site's hook and nothing else; `patience`: seconds for one question.
        """
        self._environment: Final = environment
        self._asking: Final = asking
        self._patience: Final = patience
        self.settling: Final = asking.settling
        self._connecting: Final = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._client: Client | None = None

    async def check(self) -> Sequence[str]:
        """Whether the access point answers."""
        client = await self._connected()
        try:
            await client.totals(Select(constraint="false"))
        except ClientError as error:
            raise self._away(error) from None
        return []

    async def submit(self, submission: Submission) -> BatchId:
        """A description, and the script in the sandbox, which its machines see too."""
        if submission.request.arguments:
            raise NotTakenError(
                "BatchExtraSubmitArgs of the job: another pool is told nothing by the words of a command",
                passes=False,
            )
        script = await self._asking.script(submission, HOOK, [])
        more = [line.removeprefix(HOOK).strip() for line in script.site]
        try:
            text = words_of.description(submission.intent, submission.directory, submission.request, more)
            prepared = await asyncio.to_thread(_prepared, text, submission.directory, script.text)
        except (words_of.UnwritableError, SubmitError) as error:
            raise NotTakenError(cleaned(str(error)), passes=False) from None
        except OSError as error:
            raise NotTakenError(f"its script cannot be written: {error}", passes=True) from None
        try:
            client = await self._connected()
        except UnavailableError as error:
            raise NotTakenError(str(error), passes=True) from None
        try:
            said = await client.submit(prepared, command=submission.intent)
        except CommandRefusedError as error:
            raise NotTakenError(cleaned(str(error)), passes=error.code in _PASSES) from None
        except ClientError as error:
            raise InDoubtError(str(self._away(error))) from None
        return str(said.cluster)

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """In the queue, and then among those that have left it."""
        found = {each.name: each.id for each in await self._queue(words_of.of_us(sorted(intents)))}
        if rest := sorted({*intents} - {*found}):
            constraint = words_of.of_us(rest)
            left = await self._history(Select(constraint=constraint), limit=len(rest))
            found |= {each.name: each.id for each in left}
        return found

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """One question for all."""
        return among(await self._queue(f"{words_of.NAME} isnt undefined"), jobs)

    async def cancel(self, job: Job) -> bool:
        """The number may be another job's by now, if that pool began again: the name has to fit."""
        return await self._order("remove", job)

    async def hold(self, job: Job, *, running: bool) -> None:
        """A job that runs is suspended; else it is held."""
        await self._order("suspend" if running else "hold", job)

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        await self._order("continue" if running else "release", job)

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """What the history says of those that have left the queue."""
        left = await self._history(select(*(int(each.id) for each in jobs)), limit=0)
        return {id_: each.end for id_, each in among(left, jobs).items() if each.end is not None}

    async def close(self) -> None:
        """Give up the connection."""
        self._client = None
        await self._stack.aclose()

    async def _queue(self, constraint: str) -> list[ListedJob]:
        client = await self._connected()
        try:
            ads = await client.jobs(Select(constraint=constraint), projection=words_of.SHOWN)
        except ClientError as error:
            raise self._away(error) from None
        return list(words_of.listed(ads))

    async def _history(self, jobs: Select, *, limit: int) -> list[ListedJob]:
        client = await self._connected()
        try:
            ads = await client.history(jobs, limit=limit)
        except ClientError as error:
            raise self._away(error) from None
        return list(words_of.listed(ads))

    async def _order(self, action: Action, job: Job) -> bool:
        client = await self._connected()
        meant = select(int(job.id), constraint=f"{words_of.NAME} =?= {quoted_string(job.intent)}")
        try:
            said = await client.act(action, meant, "the entrypoint that submitted it says so")
        except CommandRefusedError as error:
            if error.code == RefusalCode.NOT_FOUND:
                return False
            raise NotTakenError(cleaned(str(error)), passes=error.code in _PASSES) from None
        except ClientError as error:
            raise self._away(error) from None
        if refused := [each for each in said.outcomes if not _is_done(each)]:
            one = refused[0]
            raise NotTakenError(
                f"{action} of job {one.job}, which is {one.status}: {one.outcome}", passes=False
            )
        return True

    async def _connected(self) -> Client:
        """The connection, made when it is needed.  Raises UnavailableError."""
        async with self._connecting:
            if self._client is None:
                await self._stack.aclose()
                self._stack = AsyncExitStack()
                try:
                    pool = await asyncio.to_thread(locate, self._environment)
                    opening = Client.connect(pool=pool, patience=self._patience)
                    self._client = await self._stack.enter_async_context(opening)
                except ClientError as error:
                    raise self._away(error) from None
            return self._client

    def _away(self, error: ClientError) -> UnavailableError:
        """
        It does not answer: it may be somewhere else by now, or take another token, so that the next question connects again.
        """
        if not isinstance(error, CommandRefusedError):
            self._client = None
        return UnavailableError(cleaned(str(error)))


def _prepared(text: str, directory: str, script: str) -> Prepared:
    """What is sent, once the script lies in the sandbox.  Raises SubmitError, OSError."""
    path = Path(directory, _SCRIPT)
    path.touch(mode=0o600)
    path.write_text(script)
    return prepare(text, cwd=path.parent, environ={})


def _is_done(said: JobOutcome) -> bool:
    return said.outcome in {"done", "already_done", "not_found"}
