"""What the program of the zygote does."""

import atexit
import os
import runpy
import socket
import sys
import threading
from collections.abc import Sequence

from kettle_services.master.zygote.serving import Zygote


def serve(sock: int, modules: Sequence[str]) -> None:
    """Fork services until the master ends; in a child, be the service."""
    launch = Zygote(socket.socket(fileno=sock), modules).serve()
    if launch is None:
        return
    sys.argv[1:] = []
    try:
        runpy.run_module(launch.module, run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        if isinstance(ending.code, int) and all(thread.daemon for thread in threading.enumerate()[1:]):
            _end(ending.code)
        raise


def _end(status: int) -> None:
    """
    End this process as an interpreter ends, but for taking its modules apart: they are shared, so that each would first be
    copied, which costs more than all the rest of a service's end.
    """
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - there is no other way
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
