"""What is done inside of running jobs: commands beside them, and copies of their files."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.client.jobs.access import AttemptAccess, SideProgram
from kettle.prominence.addresses import Place
from kettle.prominence.instances import IDENTIFIER
from kettle.transfer.file_lists import is_inside
from kettle_services.gateway.prominence.application import Asked, Route, plain, refused, reply
from kettle_services.gateway.prominence.data import address_of
from kettle_services.gateway.prominence.job_lists import JobLists, one
from kettle_services.gateway.prominence.numbers import NUMBER, job_of
from kettle_services.gateway.prominence.object_directory import ObjectDirectory
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.rest.connections import PersonConnections

_MOST: Final = 4 << 20
"""Bytes of what a command says."""
_PATIENCE_S: Final = 120.0
"""The client waits half a minute longer."""
_SNAPSHOT_S: Final = 3600.0
_STDOUT: Final = 1
_GZIP: Final = 31
"""Of zlib: the format of gzip, with the largest window."""


class RunningJobs:
    """Goes into them in the name of who asks."""

    def __init__(
        self, people: PersonConnections, lists: JobLists, objects: ObjectDirectory, signer: Signer
    ) -> None:
        self._people = people
        self._lists = lists
        self._objects = objects
        self._signer = signer

    def routes(self) -> Sequence[Route]:
        """What is asked."""
        return (
            Route("POST", f"/jobs/{NUMBER}/exec", Level.WRITE, self.execute),
            Route("PUT", f"/jobs/{NUMBER}/snapshot", Level.WRITE, self.take),
            Route("GET", f"/jobs/{NUMBER}/snapshot", Level.READ, self.find),
        )

    async def execute(self, asked: Asked) -> web.StreamResponse:
        """Run a command beside a job; what it says, on both streams."""
        words = asked.text("command").split(",")
        if not words[0]:
            raise refused("A command must be provided: its words with commas between them")
        said = bytearray()
        try:
            async with (
                asyncio.timeout(_PATIENCE_S),
                self._visit(asked) as visit,
                visit.running(words) as program,
            ):
                async for output in program.output():
                    said += output.data
                    if len(said) > _MOST:
                        raise refused(
                            f"the command says more than {_MOST:,} bytes: have it write into a file"
                        )
        except TimeoutError as error:
            raise refused(f"the command took longer than {_PATIENCE_S:g} s, and was ended") from error
        return plain(bytes(said))

    async def take(self, asked: Asked) -> web.StreamResponse:
        """Keep a copy of a file or directory of a running job, in the place of the one before."""
        path = asked.text("path")
        if not is_inside(path):
            raise refused("the path has to lead to a file or directory inside of the job's directory")
        place = await self._place(asked)
        words = ["tar", "-cf", "-", "--", path]
        try:
            async with (
                asyncio.timeout(_SNAPSHOT_S),
                self._visit(asked) as visit,
                visit.running(words) as program,
            ):
                await self._objects.put(place, _packed(program, path), size=None, sha256="")
        except TimeoutError as error:
            raise refused(f"the copy took longer than {_SNAPSHOT_S:g} s, and was given up") from error
        return reply({})

    async def find(self, asked: Asked) -> web.StreamResponse:
        """Where the copy is fetched that was taken last."""
        place = await self._place(asked)
        if await self._objects.find(place) is None:
            raise refused("no snapshot of this job was taken")
        return reply({"url": address_of(self._signer, place)})

    async def _place(self, asked: Asked) -> Place:
        number = asked.path_number()
        found = await self._lists.find(asked, one(number))
        identifier = str((found[0].attributes or {}).get(IDENTIFIER, "")) if found else ""
        if not identifier:
            raise refused(f"there is no job {number} of yours")
        return Place("snapshots", asked.person.name, identifier)

    @asynccontextmanager
    async def _visit(self, asked: Asked) -> AsyncGenerator[AttemptAccess]:
        async with self._people.of(asked.person) as client:
            yield await client.visit(job_of(asked.path_number()))


async def _packed(program: SideProgram, path: str) -> AsyncIterator[bytes]:
    """
    What the program writes, compressed here, because an image may have no program for that.

    Raises RequestRefused: it did not do what it should, so that nothing of it is kept.
    """
    complaint, packer = bytearray(), zlib.compressobj(level=1, wbits=_GZIP)
    async for output in program.output():
        if output.descriptor == _STDOUT:
            yield await asyncio.to_thread(packer.compress, output.data)
        elif len(complaint) < _MOST:
            complaint += output.data
    if program.exit_code != 0:
        said = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise refused(f"{path} cannot be copied: {said or 'tar has failed'}")
    yield packer.flush()
