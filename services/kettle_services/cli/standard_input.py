"""What commands read that is no file."""

import sys
from typing import BinaryIO

from kettle_services.cli.errors import UsageError


def standard_input() -> BinaryIO:
    """Standard input, unless the parent process closed it."""
    if sys.stdin is None:
        raise UsageError("there is no standard input")
    return sys.stdin.buffer
