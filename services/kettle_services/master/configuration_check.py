"""
The check of the whole configuration before the master changes anything, in a process of its own.

It is what the command `kettle config check` does. So the master does not load what only the other services need, it checks with
its own environment, and code that was installed later than this process judges for the services that it will start.
"""

import asyncio
import contextlib
import logging
import os
import sys
from io import FileIO
from pathlib import Path
from typing import Final

import msgspec

from kettle.runtime.settings_problems import Problem
from kettle_services.master.zygote.client import Process, ServiceZygote

_PROGRAM: Final = "kettle_services.cli.configuration"
_WITHIN_S: Final = 60.0

_log: Final = logging.getLogger(__name__)
_decode: Final = msgspec.json.Decoder(list[Problem]).decode


async def problems(zygote: ServiceZygote | None) -> list[Problem]:
    """
    What is wrong; if that cannot be found out, each service has to see for itself, as it does anyway.

    The `zygote` has loaded most of what the check loads; without one the program is executed.
    """
    read, written = os.pipe()
    with os.fdopen(read, "rb", 0) as pipe:
        try:
            check = await _started(zygote, written)
        finally:
            os.close(written)
        try:
            async with asyncio.timeout(_WITHIN_S):
                said = await _all(pipe)
                status = await check.wait()
        except TimeoutError:
            _log.error("the configuration could not be checked within %g s", _WITHIN_S)
            return []
        finally:
            if check.returncode is None:
                check.kill()
                await check.wait()
    with contextlib.suppress(msgspec.DecodeError):
        if status == 0:
            return _decode(said)
    _log.error("the configuration could not be checked: %s", said.decode(errors="replace").strip())
    return []


async def _started(zygote: ServiceZygote | None, output: int) -> Process:
    forked = await zygote.launch(_PROGRAM, os.environ, Path.cwd(), output) if zygote is not None else None
    if forked is not None:
        forked.begin()
        return forked
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _PROGRAM),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


async def _all(pipe: FileIO) -> bytes:
    """What is written to a pipe until nobody can write any more."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        return await reader.read()
    finally:
        transport.close()
