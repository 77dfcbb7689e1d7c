"""What errors of Slurm's commands mean."""

import re
from typing import Final

_UNREACHABLE: Final = re.compile(
    r"Unable to contact slurm controller \(connect failure\)|failed to fetch config|not establish a configuration source"
)
_SILENT: Final = re.compile(
    r"Unable to contact slurm controller \((send|receive|shutdown)|Socket timed out|Zero Bytes were transmitted|Unexpected message received|Message (receive|send) failure|"
    r"Transport endpoint|Connection (reset|timed out)|Communication",
    re.IGNORECASE,
)


def is_unknown(errors: str) -> bool:
    """Whether the controller answered, and has no such job."""
    return "Invalid job id specified" in errors


def is_unreachable(errors: str) -> bool:
    """Whether the controller was not reached, so nothing was done."""
    return _UNREACHABLE.search(errors) is not None


def is_silent(errors: str) -> bool:
    """Whether the controller was asked, and its answer did not come."""
    return _SILENT.search(errors) is not None
