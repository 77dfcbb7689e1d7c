"""
The files of jobs at a batch system: brought before they are submitted, and their results when they are over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final, TypeVar

from kettle.accounts.lookup import StrangerError
from kettle.execution.input_files.cache import InputCache
from kettle.execution.input_files.download import InputError
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.output_files import Results, TooManyResultsError
from kettle.jobs.quoting import QuotingError
from kettle.transfer.file_lists import ManifestError
from kettle_services.ce.attempts.sandboxes import AwayError, Sandboxes
from kettle_services.ce.domain.attempts.attempt import Run
from kettle_services.ce.domain.batch.programs import program_of
from kettle_services.ce.domain.batch.script import script
from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchEnd
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.commands.startd import Activation
from kettle_wire.worker_reports import OutputFile, not_made

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
_TRY_AGAIN_S: Final = 10.0


class JobFiles:
    """Of the jobs of one batch system."""

    def __init__(self, sandboxes: Sandboxes, inputs: InputCache, name: str, *, at_once: int) -> None:
        """`at_once`: the files of so many jobs are on their way at the same time."""
        self._sandboxes: Final = sandboxes
        self._inputs: Final = inputs
        self._name: Final = name
        self._ways: Final = asyncio.Semaphore(at_once)

    async def bring(self, run: Run, activation: Activation) -> Ending | None:
        """Make a sandbox with the input files; why that cannot be, None: it is there."""
        job = JobAd(activation.ad)
        try:
            _refuse_urls(job)
            async with self._ways, self._inputs.gathered(activation) as inputs:
                path = self._sandboxes.path(run.intent)
                text = script(program_of(job, path), path)
                await self._reached(partial(self._sandboxes.make, run, activation.ad, inputs, text))
        except InputError as error:
            return Ending(code=HoldCode.TransferInputError, subcode=error.errno, reason=str(error))
        except QuotingError as error:
            return Ending(code=HoldCode.FailedToCreateProcess, reason=str(error))
        except StrangerError as error:
            return Ending(code=HoldCode.FailedToAccessUserAccount, reason=str(error))
        except OSError as error:
            return Ending(
                code=VacateCode.ScratchDirError,
                reason=f"its sandbox for {self._name} cannot be made: {error}",
            )
        return None

    async def results(self, run: Run) -> tuple[list[OutputFile], Ending | None]:
        """What a job left, and what is wrong with that."""
        try:
            results = await self._reached(partial(self._sandboxes.results, run, run.end))
        except (OSError, ValueError, ManifestError, TooManyResultsError, StrangerError) as error:
            # ValueError: the ad, which the job could change, names as a result what is no name of a file
            return [], Ending(
                code=HoldCode.TransferOutputError,
                subcode=getattr(error, "errno", None) or 0,
                reason=f"Transfer output files failure at the batch system: {error}",
            )
        return results.files, _shortcoming(results)

    async def _reached(self, work: Callable[[], Awaitable[T]]) -> T:
        """What comes of work on a sandbox, as soon as its host answers."""
        while True:
            try:
                return await work()
            except AwayError as error:
                _log.info("its host is away", extra={"system": self._name, "cause": str(error)})
            await asyncio.sleep(_TRY_AGAIN_S)

    async def left(self, run: Run) -> BatchEnd | None:
        """How a job ended by its own word.  Raises AwayError."""
        try:
            return await self._sandboxes.left(run)
        except AwayError:
            raise
        except (OSError, StrangerError) as error:
            _log.warning("its sandbox cannot be read", extra={"job": str(run.job), "cause": str(error)})
            return None

    async def begun(self, run: Run) -> str | None:
        """As the sandboxes' own.  Raises AwayError: nobody knows now."""
        try:
            return await self._sandboxes.begun(run)
        except AwayError:
            raise
        except (OSError, StrangerError) as error:
            raise AwayError(str(error)) from None

    async def remove(self, intent: str) -> None:
        """Remove a sandbox; if that cannot be now, it is removed with the next start."""
        try:
            await self._sandboxes.remove(intent)
        except OSError as error:
            _log.warning("a sandbox stays", extra={"sandbox": intent, "cause": str(error)})

    async def remove_others(self, known: Collection[str]) -> None:
        """Remove what former processes have left."""
        try:
            for left in await self._sandboxes.others(known):
                await self.remove(left)
        except OSError as error:
            _log.warning("sandboxes stay", extra={"system": self._name, "cause": str(error)})


def _refuse_urls(job: JobAd) -> None:
    if job.urls:
        raise InputError(job.urls[0], "an input that is a URL is not fetched for a batch system")


def _shortcoming(results: Results) -> Ending | None:
    if results.uploads:
        reason = f"a result cannot be sent to {results.uploads[0].url} from a batch system"
        return Ending(code=HoldCode.TransferOutputError, reason=reason)
    return not_made(results.missing) if results.missing else None
