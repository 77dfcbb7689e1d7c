"""
Self-checkpoints at a URL: sent there when the program has made one, fetched from there before its first start.
"""

import errno
from collections.abc import Iterable
from typing import Final, Protocol

import msgspec

from kettle.execution.attempts.job_spec import Input
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox, acting_as
from kettle.execution.sandbox.output_files import Results, open_result
from kettle.transfer.checkpoint_manifest import (
    DIRECTORY,
    WHERE,
    manifest_name,
    number_of,
    place,
    read,
    url,
)
from kettle.transfer.plugin import Move
from kettle_services.starter.file_transfer.plugin_process import TransferError
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode
from kettle_wire.worker_reports import OutputFile

_ROOM: Final = 32 * 1024


class Carrier(Protocol):
    """Has files moved by URL, and waits; raises TransferError."""

    def __call__(self, moves: list[Move], *, upload: bool, manifest: str, place: str) -> None:
        """With a manifest: written and sent last, or compared with what came."""
        ...


class Remote:
    """The checkpoints of one job that are not the pool's; `saved` are the files from its earlier runs."""

    def __init__(self, job: JobAd, sandbox: Sandbox, saved: Iterable[Input], carry: Carrier) -> None:
        self._sandbox = sandbox
        self._carry = carry
        self._destination = (job.text("CheckpointDestination") or "") if job.transfers else ""
        self._id = job.text("GlobalJobId") or ""
        self._number = int(job.number("NumCkpts") or 0)
        self._saved = {file.name: file for file in saved if file.name.startswith(f"{DIRECTORY}/")}

    @property
    def place(self) -> str:
        """The URL below which the next checkpoint goes; empty: it goes to the pool."""
        return place(self._destination, self._id, self._number) if self._destination else ""

    def restore(self) -> list[str]:
        """
        Fetch what the newest checkpoint has at its URL; the names of the files, which are checked.

        Raises:
            TransferError: it cannot be had, or is not what was saved.
            OSError: what the pool kept of it cannot be read.
        """
        numbered = [(number, name) for name in self._saved if (number := number_of(name)) is not None]
        if not numbered:
            return []
        number, name = max(numbered)
        self._number = max(self._number, number + 1)
        try:
            where, text = self._read(WHERE), self._read(name)
            names = list(dict.fromkeys(entry.name for entry in read(text)[0]))
        except ValueError as error:
            ending = Ending(code=HoldCode.TransferInputError, subcode=errno.EBADMSG, reason=str(error))
            raise TransferError(ending) from error
        moves = [Move(url(where, each), f"{self._sandbox.path}/{each}") for each in names]
        if moves:
            self._carry(moves, upload=False, manifest=f"{self._sandbox.path}/{name}", place=where)
        return names

    def save(self, results: Results) -> Results:
        """
        Send a checkpoint, and have the pool keep what it takes to find it again.

        Raises:
            TransferError: it could not be sent; the one before counts.
        """
        if not (where := self.place):
            return results
        name = f"{DIRECTORY}/{manifest_name(self._number)}"
        path = f"{self._sandbox.path}/{name}"
        try:
            self._carry(results.uploads, upload=True, manifest=path, place=where)
        except TransferError as error:
            ended = error.ending
            ending = Ending(
                code=HoldCode.FailedToCheckpoint if ended.holds else ended.code,
                subcode=ended.subcode,
                reason=f"the job's checkpoint cannot be saved: {ended.reason}",
            )
            raise TransferError(ending) from error
        with acting_as(self._sandbox.account):
            manifest = open_result(self._sandbox, path, name, _ROOM)
        if manifest is None:
            vanished = "the checkpoint's manifest vanished"
            raise TransferError(Ending(code=HoldCode.FailedToCheckpoint, reason=vanished))
        self._number += 1
        data = where.encode()
        kept = [OutputFile(name=WHERE, mode=0o600, size=len(data), data=data), manifest]
        return msgspec.structs.replace(
            results,
            files=[*results.files, *kept],
            uploads=[],
            kept=results.kept or manifest.data is None,
            sent=results.sent + sum(file.size for file in kept),
        )

    def _read(self, name: str) -> str:
        """
        What the pool has kept, as it came: the job's plugins have run in the sandbox, and may have put a link there.

        Raises ValueError or OSError.
        """
        if (file := self._saved.get(name)) is None:
            raise ValueError(f"the pool kept no {name} of the job's checkpoint")
        if file.data is not None:
            return file.data.decode()
        with open(file.path, encoding="utf-8") as copy:  # noqa: PTH123 - as everywhere in a starter
            return copy.read()
