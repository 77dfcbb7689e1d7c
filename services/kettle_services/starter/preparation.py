"""
What is there before a job's program is started: its sandbox, its files and tokens, and what hooks make of it.
"""

from typing import TYPE_CHECKING

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.job_environment.job_ad import JobAd, long_form
from kettle.execution.job_environment.node import hosts_file
from kettle.execution.sandbox.directory import Mark, Sandbox
from kettle.execution.system.cgroup import Cgroup
from kettle_services.starter.execution.job_remains import JobRemains
from kettle_services.starter.file_transfer.checkpoint_destination import Remote
from kettle_services.starter.file_transfer.plugin_process import downloads
from kettle_services.starter.hooks_and_transfers import HooksAndTransfers
from kettle_services.starter.parts import StarterParts

if TYPE_CHECKING:
    from kettle.execution.containers.job_container import JobContainer


class JobPreparation:
    """
    The preparation of one attempt.

    Its steps raise OSError or QuotingError; TransferError: what the job needs cannot be had; StartRefusedError: a hook says
    that it is not to run here; EndedError: it was ordered to end meanwhile.
    """

    def __init__(
        self,
        spec: JobSpec,
        job: JobAd,
        sandbox: Sandbox,
        remains: JobRemains,
        cgroup: Cgroup | None,
        parts: StarterParts,
        hooks_and_transfers: HooksAndTransfers,
        remote: Remote,
    ) -> None:
        self._spec = spec
        self._job = job
        self._sandbox = sandbox
        self._remains = remains
        self._cgroup = cgroup
        self._parts = parts
        self._hooks_and_transfers = hooks_and_transfers
        self._remote = remote

    def make_sandbox(self) -> None:
        """An empty directory, a control group, and the first hook."""
        self._remains.make_sandbox()
        if self._cgroup is not None:
            self._cgroup.make(memory_mib=self._spec.memory)
        for name, text in {".machine.ad": self._spec.machine_ad, **hosts_file(self._job)}.items():
            self._sandbox.write(name, text)
        self._hooks_and_transfers.run_prepare_hook("prepare_job_before_transfer")

    def fill(self, container: "JobContainer | None") -> dict[str, Mark]:
        """
        Files, tokens, the second hook and the job's ad; what is there then and is no result, unless the job changes it.

        `container` takes its image from where it lies.
        """
        but = container.brought() if container is not None else None
        for file in self._spec.inputs:
            if file is not but:
                self._sandbox.place(file)
        self._parts.proxy.furnish(self._sandbox, contained=container is not None)
        self._hooks_and_transfers.have_tokens(self._parts.tokens)
        if moves := downloads(self._job, self._sandbox.path):
            self._hooks_and_transfers.move(moves, upload=False)
        restored = self._remote.restore()
        self._hooks_and_transfers.run_prepare_hook("prepare_job")
        self._sandbox.write(".job.ad", long_form(self._job.whole))
        saved = {*(file.name for file in self._spec.inputs if file.saved), *restored}
        return {name: mark for name, mark in self._sandbox.catalogue().items() if name not in saved}
