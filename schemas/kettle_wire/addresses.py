"""
Addresses, as HTCondor's clients expect them.

Daemons are reached over the pool's bus, and have no ports of their own.
"""


def bus_addresses(nats_url: str) -> list[str]:
    """Host and port of each server of a bus, without credentials."""
    parts = (server.partition("://")[2] or server for server in nats_url.split(","))
    return [part.rpartition("@")[2].rstrip("/") for part in parts]


def daemon_address(nats_url: str, name: str) -> str:
    """The address of a daemon: that of the bus, with its name."""
    return f"<{bus_addresses(nats_url)[0]}?alias={name}>"
