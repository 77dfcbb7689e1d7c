"""
The file that says what a machine is for: it holds a secret, so others must not be able to read it, and it does not stay.
"""

import logging
import stat
import sys
from pathlib import Path
from typing import Final

import msgspec

from kettle_wire.bootstrap import Bootstrap

_log: Final = logging.getLogger(__name__)
_LARGEST: Final = 1 << 20


class BootstrapError(Exception):
    """The file cannot be used; one sentence, without what it says."""


def read(path: Path) -> Bootstrap:
    """What the file says; `-` is standard input.  Raises BootstrapError."""
    try:
        if str(path) == "-":
            said = sys.stdin.buffer.read(_LARGEST)
        else:
            with path.open("rb") as file:
                if mode := stat.S_IMODE(path.stat().st_mode) & 0o077:
                    raise BootstrapError(
                        f"{path} is open to others (mode bits {mode:04o}): make it readable by its owner only"
                    )
                said = file.read(_LARGEST)
    except OSError as error:
        raise BootstrapError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return msgspec.json.decode(said, type=Bootstrap)
    except msgspec.MsgspecError as error:
        raise BootstrapError(f"{path} says nothing that a worker understands: {error}") from error


def remove(path: Path) -> None:
    """Its token was used.  Where it lies on something that cannot be written it stays, and admits nobody."""
    if str(path) == "-":
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("the bootstrap file stays; its token was used", extra={"cause": str(error)})
