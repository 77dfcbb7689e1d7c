"""
What a running job prints, in the file where its owner wants it: a copy while the job runs, which its results replace.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from kettle.transfer.submit_side_paths import STDERR, STDOUT, destination
from kettle_services.shadow.chirp.remote_files import RemoteFiles
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.files.disk_threads import FileWork
from kettle_wire.ads import Ad
from kettle_wire.commands.chirp import Chirped, CloseFile, OpenFile, Trouble, WriteFile
from kettle_wire.commands.questions import StreamPiece

_FILES: Final = {"Out": STDOUT, "Err": STDERR}
_MODE: Final = 0o644


class Streaming:
    """Of one attempt.  Each piece is written where it belongs, so that one that comes twice does no harm."""

    def __init__(self, ad: Ad, access: Callable[[], Awaitable[FileAccess]], work: FileWork) -> None:
        """`access`: what the job may do with files here; it may raise StrangerError."""
        self._ad = ad
        self._access = access
        self._work = work
        self._writing = asyncio.Lock()
        self._ended = False

    async def take(self, piece: StreamPiece) -> Chirped:
        """
        Write a piece; the first one starts the file again.  Returns how much was written, or the error.

        Raises StrangerError.
        """
        target = destination(self._ad, _FILES[piece.stream])
        if target is None or self._ad.get(f"Stream{piece.stream}") is not True:
            return Chirped(Trouble.NOT_AUTHORIZED)
        places = await self._access()
        async with self._writing:
            if self._ended:
                return Chirped(Trouble.NOT_AUTHORIZED)
            return await self._work.do(partial(self._write, places, str(target), piece))

    async def end(self) -> None:
        """
        Write nothing more, once what is being written is: the job has ended.  A first piece that comes late, as those of very brief
        jobs may, would empty the file of its results.
        """
        async with self._writing:
            self._ended = True

    def _write(self, places: FileAccess, path: str, piece: StreamPiece) -> Chirped:
        # Opened for each piece: a job may print for weeks, and not often.
        files = RemoteFiles("/", places, self._work.room)
        try:
            flags = "wc" if piece.offset else "wct"
            opened = files.carry_out(OpenFile(path=path, flags=flags, mode=_MODE))
            if opened.result < 0:
                return opened
            written = files.carry_out(WriteFile(fd=opened.result, data=piece.data, offset=piece.offset))
            files.carry_out(CloseFile(fd=opened.result))
            return written
        finally:
            files.close()
