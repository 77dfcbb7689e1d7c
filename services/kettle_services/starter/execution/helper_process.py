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
_MOST_BYTES: Final = 16 << 20
"""Of an outcome: who else still has the file cannot fill our memory through it."""


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
        # Not a pipe: we read only when the process has ended, and it would not end before we had read what no pipe holds.
        self._said = os.memfd_create("outcome", os.MFD_CLOEXEC)
        try:
            self.pid = os.fork()
        except OSError:
            self.close()
            raise
        if self.pid == 0:
            _do(work, prepare, account, cgroup, directory, self._said)

    def close(self) -> None:
        """Stop reading its output."""
        os.close(self._said)

    def outcome(self) -> bytes:
        """
        Called after its end; empty, or only the beginning, if it died.  What it has left behind may still have the file
        open: nobody waits for that.
        """
        with open(self._said, "rb", closefd=False) as file:
            file.seek(0)
            return file.read(_MOST_BYTES)


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

        with open(_FIRST_FREE, "wb", closefd=False) as file:
            file.write(work(become))
        status = 0
    except Exception as error:  # noqa: BLE001 - the runner of this process
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)
