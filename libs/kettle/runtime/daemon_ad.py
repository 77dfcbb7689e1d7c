"""What every daemon says of itself in its ad, in HTCondor's words."""

import os
import platform
import socket
from typing import Final

from kettle import VERSION
from kettle_wire.addresses import daemon_address
from kettle_wire.ads.daemon import CONDOR_VERSION
from kettle_wire.ads.types import Ad

_MIB: Final = 1 << 20


def daemon_facts(role: str, name: str, nats_url: str) -> Ad:
    """What does not change while the daemon runs: its host, its address on the bus, and its version."""
    address = daemon_address(nats_url, name, role)
    uname = platform.uname()
    return {
        "Machine": socket.gethostname(),
        "MyAddress": address,
        f"{role.capitalize()}IpAddr": address,
        "CondorVersion": CONDOR_VERSION,
        "CondorPlatform": f"$CondorPlatform: {uname.machine}_{uname.system} $",
        "KettleVersion": VERSION,
        "DetectedCpus": os.cpu_count() or 1,
        "DetectedMemory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB,
    }
