"""Daemons as located by their ads."""

import msgspec

from kettle.bindings.ads import ClassAd
from kettle.bindings.errors import HTCondorLocateError
from kettle.bindings.pool_connections import pool_at, pool_here
from kettle.bindings.versions import version
from kettle.client import PoolFile
from kettle.client.connections.condor_config import bus_addresses

_PARAMETER = "pool"


def pool_of(location: ClassAd, role: str) -> PoolFile:
    """
    The pool of the daemon that an ad tells of, which is then the one of this role that is asked.

    Raises:
        KeyError: it lacks MyAddress or CondorVersion, as in HTCondor.
    """
    address, _ = str(location["MyAddress"]), location["CondorVersion"]
    try:
        pool = pool_at(address)
    except HTCondorLocateError:
        pool = pool_here()
    name = str(location.get("Name") or "")
    return msgspec.structs.replace(pool, **{role: name.partition("@")[0]}) if name else pool


def placed(ad: ClassAd, pool: PoolFile) -> ClassAd:
    """An ad with what clients need to find the daemon again."""
    address = next(iter(bus_addresses(pool)), "")
    ad.setdefault("MyAddress", f"<{address}?alias={ad.get('Name', '')}>")
    ad.setdefault("CondorVersion", version())
    return ad
