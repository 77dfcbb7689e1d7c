"""
How a command server begins: a command that was carried out by its own interpreter finds that it was not the first of late.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from kettle.command_server import asking

SOON_S: Final = 10.0
"""A person whose last command is not longer ago, in seconds, is about to type more of them; who typed one has no use for a server."""
_BEGIN: Final = """\
import sys
sys.path[:] = {paths!r}
from {module} import serve
serve({address!r}, {installation!r}, {lock}, {where})
"""


def start_if_useful(module: str, installation: str) -> None:
    """
    Start a server for the context of this process, if its person has asked for a command of late and no server is there or begins.

    `module`: the one whose `serve(address, installation, lock, where)` becomes the server, in an interpreter that has been
    started like ours; `installation`: what tells ours, see `asking.context`.
    """
    if not asking.wanted():
        return
    with suppress(OSError, asking.NoServerError):  # a server is never necessary
        where = asking.directory()
        address = asking.socket_path(where, asking.context(installation))
        if _of_late(f"{address}.used"):
            _start(module, address, installation, where)


def _of_late(path: str) -> bool:
    """Whether somebody was here some seconds ago; remembers that somebody was."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        before = os.fstat(handle)
        new = before.st_size == 0
        if new:
            os.write(handle, b"\n")
        os.utime(handle)
        return not new and time.time() - before.st_mtime < SOON_S
    finally:
        os.close(handle)


def _start(module: str, address: str, installation: str, where: int) -> None:
    import fcntl

    lock = os.open(f"{address}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # The lock goes to the server and with it: as long as it is held there is one, or one begins.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = _BEGIN.format(
            paths=sys.path,
            module=module,
            address=address,
            installation=installation,
            lock=lock,
            where=where,
        )
        _launch(text, [lock, where])
    finally:
        os.close(lock)


def _launch(text: str, kept: Sequence[int]) -> None:
    """As a process of nobody: it keeps no descriptor of ours but these, and not our session."""
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", text],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        pass_fds=kept,
        start_new_session=True,
    )
    process.returncode = 0  # nobody waits for it: it ends when it is not used any more
