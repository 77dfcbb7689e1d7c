"""
A service that does nothing but what a master has to deal with; a fixture installs it under some role's name.

SIGUSR1: ends with status 99.  SIGUSR2: ends with status 1.
`KETTLE_TEST_FAILS=<status>`: ends with that status before it is ready.
`KETTLE_TEST_STUBBORN=1`: does not care for SIGTERM.
`KETTLE_TEST_DEAF=1`: does not care for SIGABRT.
Says so when it drains.
`KETTLE_TEST_LITTERS=1`: leaves a process behind that watches nothing.
It has one child of its own that ends with the lifeline alone.
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
from pathlib import Path

from kettle.runtime import Runtime, Settings, run

_STARTER = "import os, sys; os.read(int(sys.argv[1]), 1)"


async def serve(rt: Runtime, settings: Settings) -> None:
    if status := os.environ.get("KETTLE_TEST_FAILS"):
        os._exit(int(status))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, os._exit, 99)
    loop.add_signal_handler(signal.SIGUSR2, os._exit, 1)
    if os.environ.get("KETTLE_TEST_DEAF"):
        faulthandler.disable()
        signal.signal(signal.SIGABRT, signal.SIG_IGN)
    lifeline = os.environ["KETTLE_LIFELINE_FD"]
    starter = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _STARTER, lifeline, pass_fds=[int(lifeline)], start_new_session=True
    )
    (settings.home_path / f"{rt.role}.starter").write_text(str(starter.pid))
    if os.environ.get("KETTLE_TEST_LITTERS"):
        litter = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
        (settings.home_path / f"{rt.role}.litter").write_text(str(litter.pid))
    rt.ready()
    await rt.stopping.wait()
    sys.stdout.write("drains\n")
    sys.stdout.flush()
    if os.environ.get("KETTLE_TEST_STUBBORN"):
        await asyncio.sleep(1000)
    with contextlib.suppress(ProcessLookupError):
        starter.kill()


if __name__ == "__main__":
    raise SystemExit(run(Path(__file__).parent.name, Settings, serve, uvloop=False))
