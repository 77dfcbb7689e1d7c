"""
Final reports about attempts that nobody here looks after: perhaps they are over, perhaps the schedd has not said yet.

Only the schedd's record tells. Until then they are kept, within bounds: what is dropped, its worker says again.
"""

from collections import OrderedDict
from typing import Final

from kettle_wire.commands.attempt_reports import Attempt
from kettle_wire.worker_reports import FinalReport, Report, ReportKey

_REPORTS: Final = 1000
_BYTES: Final = 32 * 1024 * 1024
_ENTRY: Final = 500
"""Bytes of a report beside its files, about."""


class UnmatchedReports:
    """Reports by attempt, those of the oldest one dropped first."""

    def __init__(self, *, reports: int = _REPORTS, size: int = _BYTES) -> None:
        self._limit = reports
        self._limit_bytes = size
        self._kept: OrderedDict[Attempt, dict[ReportKey, tuple[str, Report]]] = OrderedDict()
        self._reports = 0
        self._bytes = 0

    def add(self, startd: str, report: Report) -> bool:
        """Keep a report of a startd; False if it is kept already."""
        kept = self._kept.setdefault(Attempt(report.job, report.attempt), {})
        if report.key in kept:
            return False
        kept[report.key] = (startd, report)
        self._reports += 1
        self._bytes += _weight(report)
        while self._reports > self._limit or self._bytes > self._limit_bytes:
            self.take(next(iter(self._kept)))
        return True

    def attempts(self) -> list[Attempt]:
        """Whose reports they are."""
        return list(self._kept)

    def take(self, attempt: Attempt) -> list[tuple[str, Report]]:
        """The reports of an attempt with their startds, which are kept no longer."""
        taken = list(self._kept.pop(attempt, {}).values())
        self._reports -= len(taken)
        self._bytes -= sum(_weight(report) for _, report in taken)
        return taken


def _weight(report: Report) -> int:
    if not isinstance(report.body, FinalReport):
        return _ENTRY
    return _ENTRY + sum(len(file.data or b"") + len(file.name) + _ENTRY for file in report.body.outputs)
