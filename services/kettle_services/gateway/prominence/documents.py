"""
Documents with input files, kept as they came, so that they are submitted again: the queue has them without these.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from kettle.prominence.addresses import Place
from kettle_services.gateway.prominence.application import refused
from kettle_services.gateway.prominence.object_directory import ObjectDirectory


class Documents:
    """Of jobs and workflows, for as long as their results."""

    def __init__(self, objects: ObjectDirectory) -> None:
        self._objects = objects

    async def keep(self, owner: str, identifier: str, text: bytes) -> None:
        """One of somebody, under what its results are kept under; raises RequestRefused: he has too many."""
        await self._objects.put(_place(owner, identifier), _whole(text), size=len(text), sha256="")

    async def find(self, owner: str, identifier: str) -> bytes:
        """Raises RequestRefused: it is not kept any more."""
        path = await self._objects.where(_place(owner, identifier))
        if path is None:
            raise refused("the input files of this document are not kept any more: submit it again")
        assert isinstance(path, Path), "documents are kept here"
        return await asyncio.to_thread(path.read_bytes)


def _place(owner: str, identifier: str) -> Place:
    return Place("documents", owner, identifier.partition("/")[0])


async def _whole(text: bytes) -> AsyncIterator[bytes]:
    yield text
