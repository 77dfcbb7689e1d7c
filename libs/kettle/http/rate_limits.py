"""
How often somebody may try: token buckets, one for each address and each identity, of which only so many are
remembered.
"""

from collections import OrderedDict
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Final


def network(address: str) -> str:
    """
    What counts as one asker: an IPv4 address, also where it is written as one of IPv6, and of IPv6 the network of 64 bits that
    anybody has to choose addresses from. What is no address is itself.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found) >> 64 << 64, 64)))


class Buckets:
    """A bucket for each key: `burst` tries at once, and `rate` more each second."""

    def __init__(self, *, rate: float, burst: float, most: int = 10_000) -> None:
        self._rate: Final = rate
        self._burst: Final = burst
        self._most: Final = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str, *, now: float) -> float:
        """Seconds until there is a try for the key; 0: there is one."""
        level = self._level(key, now)
        return 0.0 if level >= 1.0 else (1.0 - level) / self._rate

    def take(self, key: str, *, now: float) -> float:
        """Use up a try, if there is one; else the seconds until there is."""
        waits = self.wait(key, now=now)
        if not waits:
            self._levels[key] = (self._level(key, now) - 1.0, now)
            self._levels.move_to_end(key)
            while len(self._levels) > self._most:  # the one that tried longest ago has the fullest bucket
                self._levels.popitem(last=False)
        return waits

    def left(self, key: str, *, now: float) -> int:
        """How many tries there are for the key at this moment."""
        return int(self._level(key, now))

    def _level(self, key: str, now: float) -> float:
        level, at = self._levels.get(key, (self._burst, now))
        return min(self._burst, level + max(0.0, now - at) * self._rate)
