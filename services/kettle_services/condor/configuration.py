"""What these commands say of themselves and of the configuration that programs expect."""

import os
import socket
import sys
from pathlib import Path
from typing import Final

from kettle.client.connections.condor_config import CondorConfig, bus_addresses, pool_of
from kettle.client.connections.pool_file import home_directory
from kettle.client.errors import ClientError
from kettle_wire.ads.daemon import CONDOR_VERSION

LIKE: Final = " ".join(CONDOR_VERSION.split()[1:3])
"""
The version of HTCondor that clients may take these commands for: several look at it before they use an option.
"""


def version() -> str:
    """As HTCondor writes it."""
    return CONDOR_VERSION


def platform() -> str:
    """The machine, as HTCondor writes it."""
    uname = os.uname()
    return f"$CondorPlatform: {uname.machine}_{uname.sysname} $"


def defaults(knobs: CondorConfig) -> dict[str, str]:
    """The knobs that have a value although nobody set them."""
    host = socket.gethostname()
    home = home_directory().absolute()
    binaries = str(Path(sys.argv[0]).absolute().parent)
    known = {
        "BIN": binaries,
        "CONDOR_HOST": host,
        "CONDOR_VERSION": LIKE.partition(" ")[0],
        "DAGMAN_COPY_TO_SPOOL": "false",
        "FILESYSTEM_DOMAIN": host,
        "HISTORY": str(home / "state" / "spool" / "history"),
        "LOG": str(home / "log"),
        "SPOOL": str(home / "state" / "spool"),
        "FULL_HOSTNAME": host if socket.getfqdn().startswith("localhost") else socket.getfqdn(),
        "HOSTNAME": host.partition(".")[0],
        "LIB": str(Path(sys.prefix) / "lib"),
        "LIBEXEC": binaries,
        "MAX_JOBS_PER_SUBMISSION": "20000",
        "RELEASE_DIR": str(Path(sys.prefix)),
        "SBIN": binaries,
        "TILDE": str(Path(sys.prefix)),
        "UID_DOMAIN": host,
    }
    try:
        pool = pool_of(knobs)
    except ClientError:
        return known
    return known | {
        "COLLECTOR_HOST": next(iter(bus_addresses(pool)), ""),
        "SCHEDD_HOST": pool.schedd,
        "SCHEDD_NAME": pool.schedd,
    }
