"""
Which daemons an administrator has switched off: kept over restarts of the master, until `on` or `kettle down`.
"""

import os
import secrets
from collections.abc import Collection

import msgspec

from kettle.pool.home import Home


def read_off(home: Home) -> frozenset[str]:
    """The daemons that are switched off; none if the file is no such list."""
    try:
        return frozenset(msgspec.json.decode(home.switched_off.read_bytes(), type=list[str]))
    except (FileNotFoundError, msgspec.DecodeError):
        return frozenset()


def write_off(home: Home, daemons: Collection[str]) -> None:
    """Replace the list, atomically and durably; raises OSError."""
    if not daemons:
        home.switched_off.unlink(missing_ok=True)
        return
    stage = home.path / f".off.{secrets.token_hex(4)}"
    fd = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.encode(sorted(daemons)))
            file.flush()
            os.fsync(file.fileno())
        stage.replace(home.switched_off)
    except OSError:
        stage.unlink(missing_ok=True)
        raise
