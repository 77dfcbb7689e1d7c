"""
Work that is done beside the job by a process which has become the job's account and joined its control group.

It is forked, not executed: the job's account may not be able to read our interpreter.
"""

import os
import sys
from collections.abc import Callable
from typing import Final, NoReturn

from kettle.execution.attempts.job_spec import Account
from kettle.execution.system.cgroup import Cgroup

_FIRST_FREE: Final = 3
_OUTCOME_BYTES: Final = 1 << 16
"""What a pipe holds: the outcome waits in it for the process's end."""


class HelperProcess:
    """
    The process that does `work` in `directory`; what that returns is the outcome. Raises OSError: there can be none.

    `work` gets the function that makes the process, or a child of it, the job's account, and calls it first of all if it
    has nothing to do with the machine's rights. What it imports as the job's account must be loaded before, by `prepare`.
    """

    def __init__(
        self,
        work: Callable[[Callable[[], None]], bytes],
        *,
        prepare: Callable[[], object],
        account: Account | None,
        cgroup: Cgroup | None,
        directory: str,
    ) -> None:
        self._said, theirs = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(theirs)
            self.close()
            raise
        if self.pid == 0:
            _do(work, prepare, account, cgroup, directory, theirs)
        os.close(theirs)

    def close(self) -> None:
        """Stop reading its output."""
        os.close(self._said)

    def outcome(self) -> bytes:
        """
        Called after its end; empty if it died.  What it has left behind may still hold the pipe: nobody waits for that.
        """
        os.set_blocking(self._said, False)
        try:
            return os.read(self._said, _OUTCOME_BYTES)
        except BlockingIOError:
            return b""


def _do(
    work: Callable[[Callable[[], None]], bytes],
    prepare: Callable[[], object],
    account: Account | None,
    cgroup: Cgroup | None,
    directory: str,
    said: int,
) -> NoReturn:
    status = 1
    try:
        prepare()
        os.dup2(said, _FIRST_FREE)
        os.closerange(
            _FIRST_FREE + 1, os.sysconf("SC_OPEN_MAX")
        )  # the starter's line must break when it dies
        if cgroup is not None:
            cgroup.join()

        def become() -> None:
            if account is not None:
                os.setresgid(account.gid, account.gid, account.gid)
                os.setresuid(account.uid, account.uid, account.uid)
            os.chdir(directory)

        os.write(_FIRST_FREE, work(become))
        status = 0
    except Exception as error:  # noqa: BLE001 - the runner of this process
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)
