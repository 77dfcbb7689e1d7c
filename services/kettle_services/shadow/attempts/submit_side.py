"""What all attempts of a shadow share."""

import asyncio
from typing import Protocol

import msgspec

from kettle_services.shadow.attempts.job_tokens import TokenRequests
from kettle_services.shadow.chirp.requests import Terms
from kettle_services.shadow.connections.startd_registry import StartdRegistry
from kettle_services.shadow.file_transfer.input_files import Inputs
from kettle_services.shadow.file_transfer.queue import TransferQueue
from kettle_services.shadow.files.disk_threads import FileWork
from kettle_services.shadow.owners import Owners
from kettle_services.shadow.spool.checkpoints import Spool
from kettle_services.shadow.spool.job_files import SpooledFiles
from kettle_wire.commands.attempt_reports import AttemptReport


class Reporting(Protocol):
    """Who is told what happens to an attempt."""

    def queue_report(self, report: AttemptReport) -> asyncio.Future[None]:
        """Queue a report; the future is done when it is recorded."""
        raise NotImplementedError


class AttemptContext(msgspec.Struct, frozen=True):
    """What all attempts of a shadow share."""

    shadow: str
    owners: Owners
    """With whose rights files are used."""
    inputs: Inputs
    workers: StartdRegistry
    reporter: Reporting
    max_output: int
    """Bytes that the results of one job may have."""
    spool: Spool
    spooled: SpooledFiles
    queue: TransferQueue
    terms: Terms
    file_work: FileWork
    tokens: TokenRequests
