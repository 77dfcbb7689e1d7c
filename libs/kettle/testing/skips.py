"""
Skips that count as failures: where all that tests look at can be installed, a skip hides a test that nobody runs.

KETTLE_TEST_ALLOWED_SKIPS names a file of patterns, one a line; a test that is skipped for another reason has failed.
"""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

VARIABLE: Final = "KETTLE_TEST_ALLOWED_SKIPS"


def allowed(environ: Mapping[str, str] = os.environ) -> Sequence[str] | None:
    """The patterns of the reasons that may be; none (`None`) if every reason may be."""
    if not (path := environ.get(VARIABLE)):
        return None
    lines = (line.strip() for line in Path(path).read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def complaint(reason: str, patterns: Sequence[str]) -> str:
    """What is wrong with a skip for this reason; empty if it may be."""
    reason = reason.removeprefix("Skipped: ")
    if any(fnmatchcase(reason, pattern) for pattern in patterns):
        return ""
    return f"skipped, and the reason is none of those in ${VARIABLE}: {reason}"
