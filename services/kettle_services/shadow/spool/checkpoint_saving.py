"""What a run leaves for the next one: fetched from its worker into the spool."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from kettle.bus.ports import RefusedError
from kettle_services.shadow.domain.transfer_checks import check_checkpoint, limit
from kettle_services.shadow.file_transfer.output_files import Fetch
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.spool.checkpoints import Spool
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.shadow import Assignment
from kettle_wire.worker_reports import Checkpointed, OutputFile

_log: Final = logging.getLogger(__name__)


class Saving:
    """
    Of one attempt. `fetching` is its turn to move files; `access` says with whose rights files are used; `most`: how many bytes if the job says nothing.
    """

    def __init__(
        self,
        assignment: Assignment,
        spool: Spool,
        fetch: Fetch,
        fetching: Callable[[list[OutputFile]], AbstractAsyncContextManager[None]],
        access: Callable[[], Awaitable[FileAccess]],
        *,
        most: int,
    ) -> None:
        self._assignment = assignment
        self._spool = spool
        self._fetch = fetch
        self._fetching = fetching
        self._access = access
        self._most = most

    async def checkpoint(self, made: Checkpointed) -> str:
        """
        Why a checkpoint could not be saved; empty if it was. Raises RefusedError if it was not handed out.
        """
        size = sum(file.size for file in made.outputs)
        if size > (most := limit(self._assignment.ad, "MaxTransferOutputMB", self._most)):
            return f"its files have {size >> 20} MiB together, more than {most >> 20} MiB"
        try:
            await self._save(made.outputs)
        except OSError as error:
            return error.strerror or str(error)
        except RefusedError as refusal:
            if refusal.code != RefusalCode.UNREADABLE:
                raise
            return str(refusal)
        except ValueError as error:  # not what the worker announced, which no repeat would change
            return str(error)
        return ""

    async def leave(self, outputs: list[OutputFile]) -> None:
        """Save what an evicted job has left, if it can be had."""
        if not outputs:
            return
        try:
            await self._save(outputs)
        except (OSError, RefusedError, ValueError) as error:
            _log.warning("job %s: not saved", self._assignment.job, extra={"cause": str(error)})

    async def _save(self, outputs: list[OutputFile]) -> None:
        assignment = self._assignment
        check_checkpoint(assignment.ad, outputs)
        async with self._fetching(outputs):
            owner = (await self._access()).rights
            await self._spool.save(assignment.job, assignment.attempt, outputs, self._fetch, owner)
