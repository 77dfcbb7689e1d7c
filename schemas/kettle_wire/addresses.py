"""
Addresses, as HTCondor's clients expect them.

Daemons are reached over the pool's bus, and have no ports of their own.
"""


def bus_addresses(nats_url: str) -> list[str]:
    """Host and port of each server of a bus, without credentials."""
    parts = (server.partition("://")[2] or server for server in nats_url.split(","))
    return [part.rpartition("@")[2].rstrip("/") for part in parts]


def daemon_address(nats_url: str, name: str, role: str = "") -> str:
    """
    The address of a daemon: that of the bus, with its name.

    No two daemons of a machine have the same one: clients tell them apart by it.  So a startd, which is called like its
    master, has its role in it.
    """
    socket = "&sock=startd" if role == "startd" else ""
    return f"<{bus_addresses(nats_url)[0]}?alias={name}{socket}>"
