"""
Plugins run beside the job in a process of their own, which has become the job's account and joined its control group.

It is forked, not executed: the job's account may not be able to read our interpreter.
"""

import importlib
import os
import sys
from typing import Final, NoReturn

import msgspec

from kettle.execution.attempt import JobSpec
from kettle.execution.cgroups import Cgroup
from kettle.execution.environment import job_environment
from kettle.execution.jobad import JobAd
from kettle.transfer.manifest import ManifestError, job_plugins, name_of_url
from kettle.transfer.plugin import Move, Moved, Order, Plugin

_FIRST_FREE: Final = 3
_OUTCOME_BYTES: Final = 1 << 16
"""What a pipe holds: the outcome waits in it for the process's end."""
STARTER_ERROR: Final = 1007


class TransferError(Exception):
    """
    Files could not be moved; `hold` true: `code` is a HoldReasonCode, else a VacateReasonCode.
    """

    def __init__(self, reason: str, *, hold: bool, code: int, subcode: int) -> None:
        super().__init__(reason)
        self.hold = hold
        self.code = code
        self.subcode = subcode


class Mover:
    """
    The process that moves some files; `outcome` is there when it has ended.
    """

    def __init__(
        self, spec: JobSpec, job: JobAd, moves: list[Move], *, upload: bool, cgroup: Cgroup | None
    ) -> None:
        scratch = f"{spec.execute}/{spec.id.sandbox}"
        order = Order(
            upload=upload,
            moves=moves,
            plugins=[*_brought(job, scratch), *spec.plugins],
            lifetime=spec.plugin_lifetime,
            scratch=scratch,
            environment=job_environment(spec, job, scratch, os.environ),
        )
        self._said, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _move(order, spec, cgroup, theirs)
        os.close(theirs)

    def close(self) -> None:
        """
        Hear no more of it.
        """
        os.close(self._said)

    def outcome(self) -> None:
        """
        Called after its end.

        Raises:
            TransferError: not all files were moved.
        """
        try:
            moved = msgspec.msgpack.decode(os.read(self._said, _OUTCOME_BYTES), type=Moved)
        except msgspec.MsgspecError:
            raise TransferError(
                "the process that moves the job's files died", hold=False, code=STARTER_ERROR, subcode=0
            ) from None
        if (fault := moved.fault) is not None:
            raise TransferError(fault.reason, hold=fault.hold, code=fault.code, subcode=fault.subcode)


def downloads(job: JobAd, sandbox: str) -> list[Move]:
    """
    The input files that are fetched by URL.

    Raises:
        TransferError: one of them cannot be placed.
    """
    try:
        return [Move(url, f"{sandbox}/{name_of_url(url)}") for url in job.urls]
    except ManifestError as error:
        raise TransferError(str(error), hold=True, code=13, subcode=22) from error


def _brought(job: JobAd, sandbox: str) -> list[Plugin]:
    """
    The plugins that came with the job's input files; they are in the sandbox, and go before the machine's.
    """
    found = job_plugins(job.text("TransferPlugins") or "")
    by_path: dict[str, list[str]] = {}
    for method, path in found.items():
        by_path.setdefault(f"{sandbox}/{os.path.basename(path)}", []).append(method)  # noqa: PTH119
    return [Plugin(path=path, methods=tuple(methods), jobs=True) for path, methods in by_path.items()]


def _move(order: Order, spec: JobSpec, cgroup: Cgroup | None, said: int) -> NoReturn:
    """
    Be that process.
    """
    status = 1
    try:
        # Only now: most jobs move nothing by URL, and a starter pays for every page as long as its job runs.
        from kettle.transfer.running import carry_out

        for plugin in order.plugins:
            if plugin.ours:
                importlib.import_module(plugin.path)  # as somebody else we could not read it any more
        os.dup2(said, _FIRST_FREE)
        os.closerange(
            _FIRST_FREE + 1, os.sysconf("SC_OPEN_MAX")
        )  # the starter's line must break when it dies
        if cgroup is not None:
            cgroup.join()
        if spec.account is not None:
            os.setresgid(spec.account.gid, spec.account.gid, spec.account.gid)
            os.setresuid(spec.account.uid, spec.account.uid, spec.account.uid)
        os.chdir(order.scratch)
        os.write(_FIRST_FREE, msgspec.msgpack.encode(carry_out(order)))
        status = 0
    except Exception as error:  # noqa: BLE001 - the runner of this process
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)
