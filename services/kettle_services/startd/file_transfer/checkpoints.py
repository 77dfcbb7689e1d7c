"""
Checkpoints of jobs on this machine that are being fetched: which files may be read, and which starters wait for the
confirmation.

Nothing is kept on disk: a starter repeats its checkpoint until it is confirmed.
"""

import hmac
from collections.abc import Iterable
from pathlib import Path

from kettle.execution.attempts.job_spec import AttemptId
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import Checkpointed, Report, ReportKey


class Checkpoints:
    """The newest unsaved checkpoint of each attempt whose sandbox is below `execute`."""

    def __init__(self, execute: Path) -> None:
        self._execute = execute
        self._waiting: dict[AttemptId, tuple[str, Report]] = {}

    def said(self, report: Report, secret: str) -> None:
        """A starter has one; who knows the secret of the claim may read it."""
        if isinstance(report.body, Checkpointed):
            self._waiting[AttemptId(report.claim, report.job, report.attempt)] = (secret, report)

    def over(self, attempt: AttemptId) -> None:
        """The attempt has ended."""
        self._waiting.pop(attempt, None)

    def saved(self, keys: Iterable[ReportKey]) -> list[tuple[AttemptId, int]]:
        """
        Which attempts, with the numbers of their checkpoints, may go on after these reports were confirmed.
        """
        found: list[tuple[AttemptId, int]] = []
        for key in keys:
            attempt = AttemptId(key.claim, key.job, key.attempt)
            _, report = self._waiting.get(attempt, ("", None))
            if report is not None and report.key == key and isinstance(report.body, Checkpointed):
                found.append((attempt, report.body.number))
                self.over(attempt)
        return found

    def sandbox_with(self, claim: str, job: JobId, attempt: int, secret: str, name: str) -> Path | None:
        """The sandbox with a file that waits to be fetched; None if there is none, or the secret is wrong."""
        known = AttemptId(claim, job, attempt)
        proof, report = self._waiting.get(known, ("", None))
        if (
            report is not None
            and hmac.compare_digest(proof.encode(), secret.encode())
            and isinstance(report.body, Checkpointed)
            and any(file.name == name and file.data is None for file in report.body.outputs)
        ):
            return self._execute / known.sandbox
        return None
