"""
Ending what starters could not: each eviction is repeated until no process of the attempt is left.

A process may be in the kernel's hands for long (a file system that hangs), or have more rights than we.  While it lives
its attempt is not over: the slot stays taken, its account is given to no other job, and no report lets the job run again.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kettle.execution.attempts.job_spec import Account, AttemptId
from kettle.execution.containers.policy import FoundRuntime
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.cgroup_layout import CgroupLayout
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.startd.machine.container_offer import ContainerOffer
from kettle_services.startd.starters import orphan_cleanup

_log: Final = logging.getLogger(__name__)
_FIRST_PATIENCE_S: Final = 5.0
_NEXT_PATIENCE_S: Final = 0.5
"""Long enough to see the end of what was killed."""
_BACKOFF: Final = Backoff(first=1.0, longest=30.0, spread=0.0)
_QUIET_S: Final = 600.0
"""Between two words about the same attempt."""


class CleanupTasks:
    """One task per attempt that is being cleaned up after."""

    def __init__(
        self,
        execute: Path,
        cgroups: CgroupLayout | None,
        containers: ContainerOffer,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._execute = execute
        self._cgroups = cgroups
        self._containers = containers
        self._tasks = tasks
        self._running: dict[str, asyncio.Task[None]] = {}
        self._stopped = threading.Event()
        self._hurried = threading.Event()

    @property
    def _engines(self) -> Sequence[FoundRuntime]:
        policy = self._containers.policy
        return policy.engines if policy is not None else []

    def __contains__(self, attempt: AttemptId) -> bool:
        return attempt.name in self._running

    def begin(self, attempt: AttemptId, account: Account | None, done: Callable[[], None]) -> None:
        """Clean up after an attempt, and call `done` when nothing of it lives.  Said twice is said once."""
        if attempt not in self:
            self._start(attempt.name, account, done)

    async def leftovers(self, known: set[str]) -> None:
        """
        Clean up after everything that is not of the sandboxes in `known`; what resists goes on being evicted later, and
        what engines have is removed with all that belongs to nothing (see `tidy_containers`): one that hangs would keep us
        from starting.
        """
        for sandbox in orphan_cleanup.leftovers(self._execute, self._cgroups):
            name = sandbox.removeprefix("dir_")
            if sandbox not in known and not await self._try(name, None, _FIRST_PATIENCE_S, engines=[]):
                self._start(name, None, lambda: None)

    def hurry(self) -> None:
        """Wait for no engine any more: what they still have of our jobs is for the next startd."""
        self._hurried.set()

    def close(self) -> None:
        """Go on no more: the next startd does."""
        self._stopped.set()  # a thread cannot be cancelled, and must not look any more when a successor does
        for task in self._running.values():
            task.cancel()

    def _start(self, name: str, account: Account | None, done: Callable[[], None]) -> None:
        self._running[name] = self._tasks.create_task(self._evict(name, account, done), name=f"evict {name}")

    async def _evict(self, name: str, account: Account | None, done: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        patience, waits, told = _FIRST_PATIENCE_S, Waits(_BACKOFF), -_QUIET_S
        while not await self._try(name, account, patience):
            if loop.time() - told >= _QUIET_S:
                told = loop.time()
                _log.error(
                    "something of a job does not go away: its slot stays taken", extra={"attempt": name}
                )
            await waits.wait()
            patience = _NEXT_PATIENCE_S
        # Nobody looks for processes of this slot's account any more, so the slot can be given to the next job.
        del self._running[name]
        done()

    async def _try(
        self,
        name: str,
        account: Account | None,
        patience: float,
        engines: Sequence[FoundRuntime] | None = None,
    ) -> bool:
        """
        In a thread, because it looks through all processes.  Who cancels this waits for the thread, which ends at its
        next look: a successor, or a program that removes the directory of a pool, finds nothing at work there.
        """
        cgroup = Cgroup(self._cgroups, name) if self._cgroups is not None else None
        sandbox = str(self._execute / f"dir_{name}")
        work = asyncio.ensure_future(
            asyncio.to_thread(
                orphan_cleanup.remove_remains, sandbox, account, cgroup, self._engines if engines is None else engines,
                patience=patience, stopped=self._stopped.is_set, hurried=self._hurried.is_set,
            )
        )  # fmt: skip
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await work
            raise
