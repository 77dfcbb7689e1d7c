"""
Work around the job by other processes, during which requests are handled: file transfers by URL, and hooks.
"""

import sys
from collections.abc import Callable
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.system.cgroup import Cgroup
from kettle.transfer.plugin import Move
from kettle_services.starter import hooks
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.file_transfer.plugin_process import PluginProcess, TransferError
from kettle_services.starter.file_transfer.progress import Transfers
from kettle_services.starter.job_tokens import TokenFiles
from kettle_wire.attempts import Ending, Usage

_LONGEST_WAIT_MS: Final = 60_000
"""For what is told of as soon as it comes."""


class EndedError(Exception):
    """The job was ordered to end: nothing more is done for it; why is in the starter's ending."""


class StartRefusedError(Exception):
    """The job is not to be started here, or not any more."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.reason)
        self.ending = ending


class Orders(msgspec.Struct, frozen=True):
    """How requests are received meanwhile."""

    watch: Callable[[ProcessTree], object]
    """Returns when a process has ended."""
    wait: Callable[[int], object]
    """Returns when so many milliseconds have passed, or a message has arrived."""
    ending: Callable[[], Ending | None]
    """Whether the job was ordered to end."""
    expose: Callable[[], None]
    """Something runs as the job's account that sees the machine's directories."""


class HooksAndTransfers:
    """The hooks and transfers of one attempt."""

    def __init__(
        self, spec: JobSpec, job: JobAd, cgroup: Cgroup | None, transfers: Transfers, orders: Orders
    ) -> None:
        self._spec = spec
        self._job = job
        self._cgroup = cgroup
        self._transfers = transfers
        self._orders = orders

    def move(self, moves: list[Move], *, upload: bool, manifest: str = "", place: str = "") -> None:
        """
        Have files moved by URL; `manifest` and `place` are those of a checkpoint.

        Raises:
            TransferError: they were not moved.
            EndedError: the job was ordered to end before.
        """
        self._transfers.begin(moves, upload=upload)
        while (wait_ms := self._transfers.wait_ms()) is not None:
            self._orders.wait(wait_ms)
            self._heed()
        self._orders.expose()
        plugin_process = PluginProcess(
            self._spec,
            self._job,
            self._transfers.moves(),
            upload=upload,
            cgroup=self._cgroup,
            manifest=manifest,
            place=place,
        )
        tree = ProcessTree(plugin_process.pid, self._cgroup)
        try:
            self._orders.watch(tree)
            self._heed()
            plugin_process.outcome()
            self._transfers.end(upload=upload)
        finally:
            self._transfers.record(plugin_process.files)
            tree.kill_all()
            plugin_process.close()

    def have_tokens(self, tokens: TokenFiles) -> None:
        """
        Wait for the job's tokens, if it wants some.

        Raises:
            TransferError: it gets none.
            EndedError: the job was ordered to end before.
        """
        while tokens.missing:
            self._orders.wait(_LONGEST_WAIT_MS)
            self._heed()
        if tokens.refusal is not None:
            raise TransferError(tokens.refusal)

    def _heed(self) -> None:
        if self._orders.ending() is not None:
            raise EndedError

    def run_prepare_hook(self, hook: hooks.Hook) -> None:
        """
        Have a program of the machine's owner prepare the job, if there is one; what it says changes the job's ad.

        Raises:
            StartRefusedError: it says that the job is not to run here, or has failed.
            EndedError: the job was ordered to end before.
            OSError, QuotingError: it cannot be run.
        """
        if not hooks.has(self._spec.hooks, hook):
            return
        told = self._ran(run := hooks.HookRun(hook, self._spec, self._job, self._cgroup, {}))
        self._heed()
        if (refusal := hooks.verdict(run, told)) is not None:
            raise StartRefusedError(refusal)
        self._job.change(told.changes)

    def run_exit_hook(self, code: int, usage: Usage) -> None:
        """Have the hook of the job's end run, if there is one. It changes nothing for the job."""
        if not hooks.has(self._spec.hooks, "job_exit"):
            return
        more, word = hooks.exit_attributes(code, usage), hooks.word(self._orders.ending())
        try:
            self._ran(hooks.HookRun("job_exit", self._spec, self._job, self._cgroup, more, word))
        except OSError as error:
            sys.excepthook(type(error), error, error.__traceback__)

    def _ran(self, run: hooks.HookRun) -> hooks.HookResult:
        tree = ProcessTree(run.pid, self._cgroup)
        try:
            self._orders.watch(tree)
            return run.told()
        finally:
            tree.kill_all()
            run.close()
