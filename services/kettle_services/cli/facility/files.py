"""
The files of a demonstration: an XRootD server that has them, and the cache of the site before it, which is told with each file where it is.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import numpy as np

from kettle.embedded.ports import listens
from kettle.embedded.server_account import Account, server_account
from kettle.embedded.server_process import ServerProcess, Stop
from kettle_services.cli.errors import CommandError
from kettle_services.cli.facility.analysis import columns

_UID: Final = 65523
"""Of no account, as those of the pool's own servers."""
_STOP: Final = Stop(((signal.SIGTERM, 5.0),))
_WITHIN_S: Final = 30.0
_LOOK_S: Final = 0.02
_ORIGIN: Final = """\
all.export / r/o
oss.localroot {data}
"""
_CACHE: Final = """\
all.export /root:/ r/o
all.export /xroot:/ r/o
pss.origin =
ofs.osslib libXrdPss.so
pss.cachelib libXrdPfc.so
pfc.ram 1g
pfc.diskusage 0.9 0.95
oss.localroot {data}
"""
_BOTH: Final = """\
xrd.port {port}
xrd.allow host localhost
all.adminpath {run}
all.pidpath {run}
"""


class SiteFiles:
    """Where they are."""

    def __init__(self, place: Path, *, origin: int, cache: int) -> None:
        """`place`: the directory of both servers, which is made; `origin`, `cache`: their ports."""
        self._place: Final = place
        self._origin: Final = origin
        self.cache: Final = cache

    @property
    def rule(self) -> str:
        """For machines of the site: what their programs read comes through the cache."""
        return f"root://*: cache=root://127.0.0.1:{self.cache}, form=url, programs=yes"

    def urls(self, parts: int) -> list[str]:
        """Of the columns."""
        return [f"root://127.0.0.1:{self._origin}//{_name(part)}" for part in range(parts)]

    def cached(self) -> int:
        """How many of the files the cache has got."""
        return sum(1 for _ in (self._place / "cache" / "data").rglob("*.npz"))

    @asynccontextmanager
    async def served(self, parts: int) -> AsyncGenerator[None]:
        """
        Run both servers as long as the context lasts, the first one with so many parts of columns.

        Raises CommandError: one of them does not start.
        """
        account = server_account(_UID)
        self._place.mkdir()
        self._place.chmod(0o711)
        async with AsyncExitStack() as stack:
            for role, text, port in (("origin", _ORIGIN, self._origin), ("cache", _CACHE, self.cache)):
                server = await _started(self._place / role, role, text, port, account, range(parts))
                stack.push_async_callback(server.stop)
                await _answering(server, port, self._place / role / "log")
            yield


async def _started(
    place: Path, role: str, text: str, port: int, account: Account, parts: Sequence[int]
) -> ServerProcess:
    data, run = place / "data", place / "run"
    for each in (place, data, run):
        each.mkdir()
    if role == "origin":
        for part in parts:
            await asyncio.to_thread(_write, data / _name(part), part)
    configuration = place / "xrootd.cfg"
    configuration.write_text(text.format(data=data) + _BOTH.format(port=port, run=run))
    account.own(place)
    return await ServerProcess.spawn(
        ["xrootd", "-c", str(configuration), "-n", role],
        account=account,
        stop=_STOP,
        environ={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(run)},
        cwd=run,
        log=place / "log",
    )


def _write(path: Path, part: int) -> None:
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **columns(part))


def _name(part: int) -> str:
    return f"part-{part}.npz"


async def _answering(server: ServerProcess, port: int, log: Path) -> None:
    until = time.monotonic() + _WITHIN_S
    while not listens(port):
        if not server.running or time.monotonic() > until:
            raise CommandError(f"XRootD does not start:\n{log.read_text(errors='replace')[-2000:]}")
        await asyncio.sleep(_LOOK_S)
