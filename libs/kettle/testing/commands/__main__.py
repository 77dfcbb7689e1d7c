"""
`python -P -m kettle.testing.commands LISTENER LIFELINE PACKAGE...`: a command server with all modules of the packages.

Both numbers are of inherited descriptors: where it takes orders, and what is closed when those who give them have ended.
"""

import atexit
import gc
import importlib
import os
import pkgutil
import runpy
import socket
import sys
import threading
from collections.abc import Iterable, Sequence

from kettle.command_server.forks import Forks


def main(arguments: list[str]) -> None:
    """Fork commands; in a child, be the command."""
    listener, lifeline, *packages = arguments
    for number in (listener, lifeline):
        os.set_inheritable(int(number), False)
    gc.disable()
    _load(packages)
    gc.freeze()  # what is there now is never looked at again, so its pages stay shared
    forks = Forks(socket.socket(fileno=int(listener)), lambda _order, _process: True, lifeline=int(lifeline))
    if assigned := forks.serve():
        _run(assigned.words)
    else:
        sys.stderr.write("nobody has the other end of the lifeline any more\n")


def _load(packages: Iterable[str]) -> None:
    """Load all modules of the packages, but the programs among them."""
    for name in packages:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith(".__main__"):
                importlib.import_module(found.name)


def _run(words: Sequence[str]) -> None:
    try:
        if words[0] == "-c":
            sys.argv[:] = ["-c", *words[2:]]
            exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - as `python -c` does
        else:
            sys.argv[:] = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ending:
        status = 0 if ending.code is None else ending.code
        if isinstance(status, int) and all(thread.daemon for thread in threading.enumerate()[1:]):
            # As an interpreter ends, but for taking its modules apart: they are shared, so that each would be copied first.
            atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - there is no other way
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status & 0xFF)
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
