"""What is asked about hosts and their daemons: the ads of masters, which the collector has."""

from datetime import UTC, datetime

from kettle.bus.ports import Bus
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.filters import Filters
from kettle_wire.ads.daemon import prefix_of
from kettle_wire.ads.types import Ad
from kettle_wire.rest.administration import Daemon, Host, Hosts, ListHosts


class HostQuestions:
    """Answers them."""

    def __init__(self, bus: Bus, collector: str, filters: Filters) -> None:
        self._bus = bus
        self._collector = collector
        self._filters = filters

    async def list(self, asked: Asked) -> Answer:
        """All hosts."""
        parameters: ListHosts = asked.parameters
        self._filters.read(parameters.filter)
        ads = await all_ads(self._bus, self._collector, "DaemonMaster", parameters.filter)
        return Answer(Hosts(hosts=[host_of(ad) for ad in ads]))


def host_of(ad: Ad) -> Host:
    """A host as its master tells of it."""
    names = str(ad.get("DaemonList", "")).split(", ")[1:]
    return Host(
        name=str(ad.get("Name", "")),
        version=str(ad.get("KettleVersion", "")),
        new_version=str(ad.get("NewVersion", "")),
        since=_moment(ad, "DaemonStartTime"),
        heard=_moment(ad, "LastHeardFrom"),
        daemons=[_daemon(ad, name) for name in names if name],
    )


def _daemon(ad: Ad, name: str) -> Daemon:
    prefix = prefix_of(name)
    since = next((key for key in (f"{prefix}_StartTime", f"{prefix}_EndTime") if key in ad), "")
    return Daemon(
        name=name,
        state=str(ad.get(f"{prefix}_State", "")),
        pid=_number(ad, f"{prefix}_Pid") or None,
        since=_moment(ad, since) if since else None,
        restarts=_number(ad, f"{prefix}_Restarts"),
        hangs=_number(ad, f"{prefix}_Hangs"),
        last_exit=str(ad.get(f"{prefix}_LastExit", "")),
    )


def _number(ad: Ad, name: str) -> int:
    value = ad.get(name)
    return int(value) if isinstance(value, int | float) else 0


def _moment(ad: Ad, name: str) -> datetime:
    return datetime.fromtimestamp(_number(ad, name), UTC)
