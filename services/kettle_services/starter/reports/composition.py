"""What a starter says of its attempt, and how much the attempt has used so far."""

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.system.linux import boottime
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord, Transfer, Usage
from kettle_wire.worker_reports import Body, FinalReport, Report


def exit_record(code: int, *, at: float, core: str | None, output: Transfer | None) -> ExitRecord:
    """
    How the program ran to its end; a negative `code` is that of the signal which ended it.

    `core` is the file of its memory among the results: empty if it is not there, None if there was none.
    """
    return ExitRecord(
        code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        at=at,
        dumped=core is not None,
        core=core or "",
        output=output,
    )


class ReportComposer:
    """Numbers the reports of one attempt."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self._sequence = spec.sequence

    def report(self, body: Body) -> Report:
        """The next report."""
        self._sequence += 1
        spec = self._spec
        return Report(
            claim=spec.key.claim,
            attempt=spec.attempt,
            sequence=self._sequence,
            job=spec.job,
            body=body,
            trace=spec.trace,
        )

    def usage(self, sandbox: Sandbox, tree: ProcessTree | None, cpu: tuple[float, float]) -> Usage:
        """Up to now; `cpu` is user and system time in seconds."""
        return Usage(
            wall=round(boottime() - self._spec.began, 6),
            user_cpu=cpu[0],
            system_cpu=cpu[1],
            memory_kib=tree.memory_kib() if tree is not None else 0,
            disk_kib=sandbox.size_kib(),
            received=self._spec.received,
        )


def ended(ending: Ending, usage: Usage) -> FinalReport:
    """The final report of an attempt that ended without a result."""
    return FinalReport(result=AttemptResult(ending=ending, usage=usage))
