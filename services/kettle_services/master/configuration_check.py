"""
The check of the whole configuration before the master changes anything, in a process of its own.

It is the command that an administrator types. So the master does not load what only the other services need, it checks with
its own environment, and code that was installed later than this process judges for the services that it will start.
"""

import asyncio
import logging
import sys
from typing import Final

import msgspec

from kettle.runtime.settings_problems import Problem

_WITHIN_S: Final = 60.0
_WRONG: Final = 1

_log: Final = logging.getLogger(__name__)


async def problems() -> list[Problem]:
    """What is wrong; if that cannot be found out, each service has to see for itself, as it does anyway."""
    check = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "kettle_services.cli", "config", "check", "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            said, trouble = await check.communicate()
    except TimeoutError:
        _log.error("the configuration could not be checked within %g s", _WITHIN_S)
        return []
    finally:
        if check.returncode is None:
            check.kill()
            await check.wait()
    if check.returncode not in {0, _WRONG} or trouble:
        _log.error("the configuration could not be checked: %s", trouble.decode(errors="replace").strip())
        return []
    return msgspec.json.decode(said, type=list[Problem])
