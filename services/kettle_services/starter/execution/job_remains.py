"""What is left of a job on the machine at its end: removed, but for results that are still to be fetched."""

from kettle.execution.attempts.job_spec import Isolation, JobSpec
from kettle.execution.processes.isolation import Enclosure
from kettle.execution.processes.kept_namespaces import NamespaceKeeper
from kettle.execution.sandbox.account_remains import remains_of
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.sandbox.spare import SpareSandbox


class JobRemains:
    """What one attempt leaves; made before anything runs for it."""

    def __init__(
        self, spec: JobSpec, sandbox: Sandbox, namespaces: NamespaceKeeper, spare: SpareSandbox, owner: str
    ) -> None:
        """`owner`: whose job it is, as its access point calls the person."""
        self._sandbox = sandbox
        self._namespaces = namespaces
        self._spare = spare
        self._owner = (spec.schedd, owner)
        self._of_account = remains_of(spec.account)
        self._hidden = Isolation()
        """What the job has seen nothing of, because it had its own."""
        self._exposed = spec.hooks is not None
        """Whether something ran as the job's account that was not isolated as the job is."""

    def make_sandbox(self) -> None:
        """Have an empty sandbox: that of the job before, if it may be had.  Raises OSError."""
        if not self._spare.give(self._sandbox, self._owner):
            self._sandbox.make()

    def enclosed(self, enclosure: Enclosure | None) -> None:
        """The job is started now, in this or without any."""
        self._hidden = Isolation() if enclosure is None else enclosure.isolation

    def expose(self) -> None:
        """Something runs as its account beside it, with the directories of the machine."""
        self._exposed = True

    def remove(self, *, results: bool, follows: bool) -> None:
        """
        Remove all of it; `results`: the sandbox holds some that stay.  `follows`: this process waits for another job, which may
        have the directory.  No process of the job is left.

        Raises OSError for what cannot be removed, after all else is.
        """
        self._namespaces.end_use()
        try:
            if self._of_account is not None:
                self._of_account.remove(Isolation() if self._exposed else self._hidden)
        finally:
            try:
                self._sandbox.remove_area()
            finally:
                if results:
                    self._sandbox.close_to_others()
                elif not (follows and self._spare.keep(self._sandbox, self._owner)):
                    self._sandbox.remove()
