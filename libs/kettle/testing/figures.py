"""
What the programs that measure have in common: medians with their range, processor time, progress away from the figures.
"""

import os
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def say(text: str) -> None:
    """
    Progress, on the standard error.
    """
    sys.stderr.write(f"{text}\n")


def summary(values: Iterable[float], digits: int = 3) -> dict[str, Any]:
    """
    Median, range and number of the values.
    """
    sample = sorted(values)
    return {
        "median": round(statistics.median(sample), digits),
        "min": round(sample[0], digits),
        "max": round(sample[-1], digits),
        "n": len(sample),
    }


def processor_seconds(pid: int) -> float:
    """
    What a process has used of the processors so far, by user and system.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
