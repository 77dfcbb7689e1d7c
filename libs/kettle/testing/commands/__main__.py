"""
`python -P -m kettle.testing.commands SOCKET PACKAGE...`: the socket is the number of an inherited descriptor.
"""

import atexit
import gc
import os
import runpy
import socket
import sys
import threading

from kettle.testing.commands.serving import Forks, load


def main(arguments: list[str]) -> None:
    """Fork commands; in a child, be the command."""
    number, *packages = arguments
    os.set_inheritable(int(number), False)
    gc.disable()
    load(packages)
    gc.freeze()  # what is there now is never looked at again, so its pages stay shared
    order = Forks(socket.socket(fileno=int(number))).serve()
    if order is not None:
        _run([os.fsdecode(word) for word in order.words])


def _run(words: list[str]) -> None:
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
