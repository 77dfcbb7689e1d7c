"""The program that tunes the host before the services start."""

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kettle.execution.system.linux import end_group

_log: Final = logging.getLogger(__name__)


async def tune(command: Sequence[str], *, timeout_s: float, log: Path) -> str:
    """
    Run the program in a session of its own, with its output appended to `log`; returns how it ended, as text.

    Failures are reported and stop nothing: a host that is not tuned works, only less well.
    """
    try:
        how = await _run(command, timeout_s, log)
    except OSError as error:
        how = f"cannot be started: {error.strerror}"
    level = logging.INFO if how == "done" else logging.ERROR
    _log.log(level, "tuning the host with %s: %s; its output is in %s", command[0], how, log)
    return how


async def _run(command: Sequence[str], timeout_s: float, log: Path) -> str:
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=fd, stderr=fd, start_new_session=True
        )
    finally:
        os.close(fd)
    try:
        async with asyncio.timeout(timeout_s):
            status = await process.wait()
    except TimeoutError:
        return f"killed, it took longer than {timeout_s:g} s"
    finally:
        if process.returncode is None:
            end_group(process.pid)
            await process.wait()
    return "done" if status == 0 else f"status {status}" if status > 0 else f"signal {-status}"
