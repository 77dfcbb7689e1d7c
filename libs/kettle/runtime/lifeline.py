"""
The lifeline: no service survives the death of the master.

The master holds the only write end of a pipe; every service inherits the read end.  However the master dies, the
kernel closes the write end, and the read end reports end of file.  `PR_SET_PDEATHSIG`, which a spawner may set too,
is lost across a change of credentials; the pipe is not.

Jobs do survive it, for the length of their leases: the startd of the next master takes them over.  They end with
another lifeline, if there is one: that of the program that has started the master and
wants nothing to outlive it, as a test or `make demo` does.
"""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Final

VARIABLE: Final = "KETTLE_LIFELINE_FD"
"""For a service: it ends with the master.  For a master: the pool ends with the program that has started it."""

OF_JOBS: Final = "KETTLE_JOBS_LIFELINE_FD"
"""For a startd: its jobs end with the program that has started the master."""

EXIT_ORPHANED: Final = 70


class Lifeline:
    """The master's side: give `read_fd` to children (`pass_fds`), and keep this object alive."""

    def __init__(self) -> None:
        # Both ends are close-on-exec; `pass_fds` makes exactly the read end inheritable, in the child alone.
        self.read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)

    def environ(self) -> dict[str, str]:
        """What a child's environment has to say."""
        return {VARIABLE: str(self.read_fd)}

    def close(self) -> None:
        """Close the lifeline: every service that holds the other end stops at once."""
        for fd in (self.write_fd, self.read_fd):
            if fd >= 0:
                os.close(fd)
        self.read_fd = self.write_fd = -1


def make_lifeline() -> Lifeline:
    """A pipe whose write end only this process holds."""
    return Lifeline()


def watch(
    fd: int, orphaned: Callable[[], None], *, grace: float = 1.0, die: Callable[[int], None] = os._exit
) -> threading.Thread:
    """
    Call `orphaned` when the master has ended, and end the process `grace` seconds later in any case.

    It is a thread, because a service whose event loop hangs must end with its master, too.
    `orphaned` runs in that thread.
    """

    def wait() -> None:
        try:
            while os.read(fd, 1):
                pass  # nobody writes; if somebody does, it means nothing
        except OSError:
            return  # the descriptor was closed here: this process no longer wants to know
        try:
            orphaned()
        finally:
            threading.Event().wait(grace)
            die(EXIT_ORPHANED)

    thread = threading.Thread(target=wait, name="lifeline", daemon=True)
    thread.start()
    return thread


def inherited(environ: Mapping[str, str], variable: str = VARIABLE) -> int | None:
    """
    The read end that we were given by this variable, if any.  Children of ours do not get it by accident.

    Raises:
        ValueError: the variable is set, and is not an open descriptor.
    """
    if variable not in environ:
        return None
    try:
        fd = int(environ[variable])
        os.set_inheritable(fd, False)
    except (ValueError, OSError) as error:
        raise ValueError(f"{variable}={environ[variable]}: not an open file descriptor") from error
    return fd
