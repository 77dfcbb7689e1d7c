"""Which hosts of a pool are there, and when that changes next."""

from collections.abc import Mapping

from kettle_services.simulator.platforms.host_changes import Changes


class HostsOverTime:
    """All hosts that are not there all the time, by their places; each change is looked at when it is due."""

    def __init__(self, changes: Mapping[int, Changes]) -> None:
        self._changes = dict(changes)
        self._next: dict[int, tuple[int, bool]] = {}
        self.gone: set[int] = set()
        """Those that do not come again."""
        for host in self._changes:
            self._look_ahead(host)

    def due(self) -> list[tuple[int, int]]:
        """The next change of each host: when, and the host."""
        return [(at, host) for host, (at, _) in self._next.items()]

    def change(self, host: int) -> bool:
        """The next change of a host happens; whether the host comes."""
        _, comes = self._next.pop(host)
        self._look_ahead(host)
        if not comes and host not in self._next:
            self.gone.add(host)
        return comes

    def next(self, host: int) -> int | None:
        """When the host changes again."""
        return self._next[host][0] if host in self._next else None

    def _look_ahead(self, host: int) -> None:
        change = next(self._changes[host], None)
        if change is not None:
            self._next[host] = change
